-- When a lease ends that begins now. Parameter: lease in milliseconds.
SELECT strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', ? / 1000.0))
