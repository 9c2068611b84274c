-- name: open
-- Runs once on every new connection. READ COMMITTED: READPAST is refused at SNAPSHOT and SERIALIZABLE, and a pooled
-- connection keeps what its last user set. XACT_ABORT ON: any error ends the whole transaction, so that no half-done
-- work can be committed later. LOCK_TIMEOUT: a table that another session locks is an error (1222), and no hang; the
-- tick of a Dagster sensor has room for one. NOCOUNT stays off: a caller's ORM counts the rows that its statements
-- changed. Locks: none.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET XACT_ABORT ON;
SET LOCK_TIMEOUT 15000;

-- name: catalog
-- The database of this connection; every address names it. Locks: none.
SELECT DB_NAME()

-- name: scope_open
-- Marks a transaction in which the caller runs its own statements: an application lock that ends with it. Locks: the
-- application lock, until the transaction ends.
IF @@TRANCOUNT = 0 BEGIN TRANSACTION;
DECLARE @result int;
EXEC @result = sp_getapplock @Resource = :scope, @LockMode = N'Exclusive', @LockOwner = N'Transaction',
    @LockTimeout = 0;
SELECT @result;

-- name: scope_check
-- Whether that transaction is still the same. An error that the caller ignored has ended it (XACT_ABORT), and the
-- caller's later work would be committed on its own. Locks: none.
SELECT APPLOCK_MODE(N'public', :scope, N'Transaction')
