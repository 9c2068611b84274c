-- Beside senders and receivers; cuts the empty pages at the end of the table off, too.
VACUUM (ANALYZE) {queue};
