-- Give back the places of an owner, all but the first few. Parameters: queue, owner, how many it keeps.
DELETE FROM {receivers} AS given_back
USING (
    SELECT queue, place, owner, row_number() OVER (ORDER BY place) AS number
    FROM {receivers}
    WHERE queue = ? AND place > 0 AND owner = ?
) AS held
WHERE given_back.queue = held.queue
    AND given_back.place = held.place
    AND given_back.owner = held.owner
    AND held.number > CAST(? AS integer)
