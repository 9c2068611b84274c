-- One installer at a time for a table, until the end of the transaction. .NET installers take the same lock.
-- sp_getapplock does not begin a transaction by itself, and refuses without one.
IF @@TRANCOUNT = 0 BEGIN TRANSACTION;
DECLARE @result int;
EXEC @result = sp_getapplock @Resource = ?, @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 60000;
SELECT @result;
