-- Give back every place that one owner still has, in all queues. Parameter: owner.
DELETE FROM {receivers} WHERE Owner = ? AND Place > 0;
SELECT @@ROWCOUNT;
