-- A row whose headers cannot be read goes to the error queue as it is.
-- Parameters: id, id (again: other dialects need it twice), headers, 1 when the body was NULL, body.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT COALESCE(?1, ?2), NULL, ?3, CASE WHEN ?4 = 1 THEN NULL ELSE ?5 END
