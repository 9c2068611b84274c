-- Drop what was staged for claims that are no more: nobody will ever ask for it.
DELETE FROM {outbox} AS o WHERE NOT EXISTS (SELECT 1 FROM {claims} AS c WHERE c.claim_id = o.claim_id)
