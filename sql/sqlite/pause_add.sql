-- Pause something, unless it is paused already: the first reason stays. Parameters: name, by, reason.
INSERT INTO {pauses} (Name, PausedAt, PausedBy, Reason)
VALUES (?1, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), ?2, ?3)
ON CONFLICT (Name) DO NOTHING
