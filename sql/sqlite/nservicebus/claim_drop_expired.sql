-- Expired messages are dropped, not processed. Parameter: claim id.
DELETE FROM {claimed} WHERE ClaimId = ? AND Expires <= strftime('%Y-%m-%d %H:%M:%f', 'now')
