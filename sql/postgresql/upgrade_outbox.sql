-- The first installations had a table of another shape, which nothing was ever written to.
DROP TABLE {outbox}
