-- The example's own table: what was ordered a country and a day, added to by the pipeline `orders`.
CREATE TABLE IF NOT EXISTS {table} (
    country varchar(2) NOT NULL,
    day date NOT NULL,
    orders bigint NOT NULL,
    revenue decimal(18, 2) NOT NULL,
    PRIMARY KEY (country, day)
);
