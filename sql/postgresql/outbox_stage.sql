-- The same packed insert (see nservicebus/send.sql) into the outbox.
-- Parameters: claim id, task, pile, then those of the packed messages.
INSERT INTO {outbox} (claim_id, task, pile, id, milliseconds, headers, body)
SELECT
    common.claim_id, common.task, common.pile,
    m.id,
    COALESCE(m.milliseconds, -1),
    m.headers,
    COALESCE(convert_to(m.body, 'UTF8'), substring(common.buffer FROM m.start FOR m.size))
FROM
    (
        SELECT
            CAST(? AS uuid) AS claim_id, CAST(? AS text) AS task, CAST(? AS integer) AS pile, CAST(? AS bytea) AS buffer
        OFFSET 0
    ) AS common,
    LATERAL (
        SELECT
            unnest(CAST(? AS uuid[])) AS id, unnest(CAST(? AS bigint[])) AS milliseconds,
            unnest(string_to_array(CAST(? AS text), chr(30))) AS headers,
            unnest(string_to_array(NULLIF(CAST(? AS text), ''), chr(30))) AS body,
            unnest(CAST(? AS integer[])) AS start, unnest(CAST(? AS integer[])) AS size
    ) AS m
