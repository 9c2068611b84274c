-- Insert one message; the library runs it once for each row. Parameters: id, milliseconds to live (-1 = for ever), headers, body.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT
    m.column1,
    CASE WHEN m.column2 <> -1 THEN strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', m.column2 / 1000.0)) END,
    m.column3,
    m.column4
FROM (VALUES (?, ?, ?, ?)) AS m
