-- The example's own table: what was ordered a country and a day, added to by the pipeline `orders`.
CREATE TABLE IF NOT EXISTS {table} (
    country TEXT NOT NULL,
    day DATE NOT NULL,
    orders BIGINT NOT NULL,
    revenue DECIMAL(18, 2) NOT NULL,
    PRIMARY KEY (country, day)
);
