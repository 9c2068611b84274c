-- Whether that transaction is still the same: an error that the caller ignored has ended it (XACT_ABORT), and what the
-- caller did afterwards would be committed on its own. Parameter: the mark.
SELECT APPLOCK_MODE(N'public', ?, N'Transaction')
