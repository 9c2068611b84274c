-- Hold the messages of a claim for longer: those that are still its own. now() is one moment in the whole statement.
-- Parameters: lease in milliseconds, claim id.
WITH term AS MATERIALIZED (
    SELECT
        (now() AT TIME ZONE 'UTC') + CAST(? AS integer) * INTERVAL '1 millisecond' AS lease,
        CAST(? AS uuid) AS claim_id
),
kept AS (
    UPDATE {queue} AS q
    SET retry_time = t.lease
    FROM {claimed} AS c, term AS t
    WHERE c.id = q.id AND c.claim_id = t.claim_id AND q.subqueue = 'R' AND q.retry_time = c.lease
)
UPDATE {claimed} AS c SET lease = t.lease FROM term AS t WHERE c.claim_id = t.claim_id
