-- Take out of a claim what is no longer its own: the lease was over, and somebody else had it. Parameter: claim id.
DELETE FROM {claimed}
WHERE claim_id = ?
    AND NOT EXISTS (
        SELECT 1 FROM {queue} AS q
        WHERE q.id = {claimed}.id AND q.subqueue = 'R' AND q.retry_time = {claimed}.lease
    )
