-- Mark a transaction in which the caller runs statements of its own: a lock that ends with it. Parameter: the mark.
IF @@TRANCOUNT = 0 BEGIN TRANSACTION;
DECLARE @result int;
EXEC @result = sp_getapplock @Resource = ?, @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 0;
SELECT @result;
