-- Resume what was paused; touches no row when it was not. Parameter: name.
DELETE FROM {pauses} WHERE Name = ?;
SELECT @@ROWCOUNT;
