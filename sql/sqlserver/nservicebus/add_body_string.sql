-- The body as text for people who look into the table; computed when read, as the reference does it: a cast, so only
-- UTF-16 bodies are legible.
IF COL_LENGTH({queue_text}, N'BodyString') IS NULL
    ALTER TABLE {queue} ADD [BodyString] AS CAST([Body] AS nvarchar(max));
