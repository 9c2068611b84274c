-- name: create_order_totals
-- The example's own table: orders per country and day; the pipeline `orders` adds to it. Locks: the new table.
IF OBJECT_ID({table_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {table} (
        [country] varchar(2) NOT NULL,
        [day] date NOT NULL,
        [orders] bigint NOT NULL,
        [revenue] decimal(18, 2) NOT NULL,
        PRIMARY KEY ([country], [day])
    );
END

-- name: order_totals
-- The totals of the example, for people: the oldest day first. Locks: shared while it reads.
SELECT [country], [day], [orders], [revenue] FROM {table} ORDER BY [day], [country]
