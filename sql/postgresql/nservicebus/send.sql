-- Insert many messages that arrive packed, so that the driver converts seven values instead of four a message.
-- Headers are one text, and so are bodies when they are plain text: each message's part ends at a record separator, a
-- character that JSON escapes. Other bodies are one binary value, cut by offset and length. Arrays that are shorter
-- than the ids count as NULL for the rest: no array of lifetimes means that nothing expires.
-- Parameters: binary bodies, ids, milliseconds to live (-1 = for ever), headers, text bodies, offsets (1-based), lengths.
-- OFFSET 0 keeps the subquery whole; the arrays are unnested in the select list, where they are not stored away first
-- as they would be in FROM. now() is the transaction's start, as the reference has it; seq follows the order of the ids.
INSERT INTO {queue} (id, expires, headers, body)
SELECT
    m.id,
    (now() AT TIME ZONE 'UTC') + NULLIF(m.ttl, -1) * INTERVAL '1 millisecond',
    m.headers,
    COALESCE(convert_to(m.body, 'UTF8'), substring(packed.buffer FROM m.start FOR m.size))
FROM
    (SELECT CAST(? AS bytea) AS buffer OFFSET 0) AS packed,
    LATERAL (
        SELECT
            unnest(CAST(? AS uuid[])) AS id, unnest(CAST(? AS integer[])) AS ttl,
            unnest(string_to_array(CAST(? AS text), chr(30))) AS headers,
            unnest(string_to_array(NULLIF(CAST(? AS text), ''), chr(30))) AS body,
            unnest(CAST(? AS integer[])) AS start, unnest(CAST(? AS integer[])) AS size
    ) AS m
