-- Whether a claim is still its holder's, and will be until this transaction ends: nobody can complete it meanwhile, while
-- leases may be renewed. Parameters: claim id, owner, attempt.
SELECT 1 FROM {claims} WHERE claim_id = CAST(? AS uuid) AND owner = ? AND attempt = ? FOR KEY SHARE
