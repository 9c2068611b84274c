-- A row whose headers cannot be read goes to the error queue as it is. Ids are not unique here, so it keeps its own.
-- Parameters: id, id (again: other dialects need it twice), headers, 1 when the body was NULL, body.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT
        COALESCE(CAST(? AS uniqueidentifier), CAST(? AS uniqueidentifier)) AS Id,
        CAST(1 AS bit) AS Recoverable,
        CAST(NULL AS datetime) AS Expires,
        CAST(? AS nvarchar(max)) AS Headers,
        CASE WHEN CAST(? AS int) = 1 THEN NULL ELSE CAST(? AS varbinary(max)) END AS Body
) AS m
