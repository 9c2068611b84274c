-- The totals of the example, for people: the oldest day first.
SELECT country, day, orders, revenue FROM {table} ORDER BY day, country
