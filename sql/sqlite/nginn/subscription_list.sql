-- Every subscription, with the seconds until it expires. Parameters: publisher, or twice nothing for all.
SELECT
    publisher_endpoint, subscriber_endpoint, message_type,
    CAST((julianday(expiration_date) - julianday('now')) * 86400 AS INTEGER)
FROM {subscriptions}
WHERE ? = '' OR publisher_endpoint = ?
ORDER BY publisher_endpoint, message_type, subscriber_endpoint
