-- Insert one delayed message. Parameters: id, delay in milliseconds (negative for the past), headers, body.
INSERT INTO {delayed} (Id, Due, Headers, Body)
SELECT
    m.column1,
    strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', m.column2 / 1000.0)),
    m.column3,
    m.column4
FROM (VALUES (?, ?, ?, ?)) AS m
