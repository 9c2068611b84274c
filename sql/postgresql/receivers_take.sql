-- Occupy one place. Parameters: queue, place, owner, lease in milliseconds.
INSERT INTO {receivers} (queue, place, owner, lease_until)
SELECT
    CAST(? AS text), CAST(? AS integer), CAST(? AS text),
    clock_timestamp() + CAST(? AS bigint) * INTERVAL '1 millisecond'
