-- Every subscription, with the seconds until it expires. Parameters: publisher, or twice nothing for all.
SELECT
    publisher_endpoint, subscriber_endpoint, message_type,
    CAST(extract(EPOCH FROM expiration_date - (now() AT TIME ZONE 'UTC')) AS bigint)
FROM {subscriptions}
WHERE ? = '' OR publisher_endpoint = ?
ORDER BY publisher_endpoint, message_type, subscriber_endpoint
