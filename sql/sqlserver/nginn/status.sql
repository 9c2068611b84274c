-- A queue at a glance: ready, up to a limit; milliseconds since the oldest of those was due. Parameter: the limit.
SELECT
    (SELECT COUNT(*) FROM (SELECT TOP (?) 1 AS one FROM {queue} WITH (NOLOCK) WHERE subqueue = 'I') AS waiting),
    (
        SELECT DATEDIFF_BIG(millisecond, MIN(retry_time), GETDATE())
        FROM {queue} WITH (NOLOCK)
        WHERE subqueue = 'I' AND retry_time <= GETDATE()
    )
