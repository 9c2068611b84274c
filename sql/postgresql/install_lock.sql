-- One installer at a time for a table, until the end of the transaction. The key is the one that .NET installers use.
SELECT pg_advisory_xact_lock(CAST(? AS bigint))
