-- Pause something, unless it is paused already: the first reason stays. Parameters: name, by, reason.
INSERT INTO {pauses} (name, paused_at, paused_by, reason)
SELECT CAST(? AS text), clock_timestamp(), CAST(? AS text), CAST(? AS text)
ON CONFLICT (name) DO NOTHING
