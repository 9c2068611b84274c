-- Make sure that a sequence has a row. Parameters: its state if it is new, its id.
INSERT INTO {sequences} (data, id, last_modified)
SELECT CAST(? AS text), CAST(? AS text), strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE TRUE
ON CONFLICT (id) DO NOTHING
