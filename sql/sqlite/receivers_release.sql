-- Give back the places of an owner, all but the first few. Parameters: queue, owner, how many it keeps.
DELETE FROM {receivers}
WHERE Queue = ?1 AND Place > 0 AND Owner = ?2
    AND Place NOT IN (
        SELECT Place FROM {receivers} WHERE Queue = ?1 AND Place > 0 AND Owner = ?2 ORDER BY Place LIMIT ?3
    )
