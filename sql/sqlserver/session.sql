-- Run once on every new connection.
-- READ COMMITTED: READPAST is refused at SNAPSHOT and SERIALIZABLE, and a pooled connection keeps what its last user set.
-- XACT_ABORT ON: any error ends the whole transaction, so that nothing half done can be committed later.
-- NOCOUNT ON: no row-count messages between results; statements that need a count select @@ROWCOUNT.
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET XACT_ABORT ON;
SET NOCOUNT ON;
