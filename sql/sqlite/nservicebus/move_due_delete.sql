-- Delete what was copied. Both statements run under one write lock, and the clock moves on between them, so the rows are
-- named by how many were copied, not by their time. Parameter: that number.
DELETE FROM {delayed}
WHERE RowVersion IN (SELECT RowVersion FROM {delayed} ORDER BY Due, RowVersion LIMIT ?)
