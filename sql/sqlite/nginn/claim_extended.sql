-- Second half of claim_extend.sql. Parameters: end of the lease, claim id.
UPDATE {claimed} SET lease = ? WHERE claim_id = ?
