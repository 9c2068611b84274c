-- One row when the table is there.
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = {queue_name} COLLATE NOCASE
