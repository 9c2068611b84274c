-- What a merge needs, for the user's own migration; never run from here.
CREATE UNIQUE INDEX {index} ON {table} ({keys});
