-- The database that this connection is in; every address names it.
SELECT DB_NAME()
