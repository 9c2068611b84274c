-- name: create_order_totals
-- The example's own table: orders per country and day; the pipeline `orders` adds to it. Locks: the new table.
CREATE TABLE IF NOT EXISTS {table} (
    country varchar(2) NOT NULL,
    day date NOT NULL,
    orders bigint NOT NULL,
    revenue decimal(18, 2) NOT NULL,
    PRIMARY KEY (country, day)
);

-- name: order_totals
-- The totals of the example, for people: the oldest day first. Locks: none.
SELECT country, day, orders, revenue FROM {table} ORDER BY day, country
