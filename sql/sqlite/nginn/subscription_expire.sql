-- End a subscription whose time is over. Parameters: publisher, subscriber, type.
DELETE FROM {subscriptions}
WHERE publisher_endpoint = ? AND subscriber_endpoint = ? AND message_type = ?
    AND expiration_date <= strftime('%Y-%m-%d %H:%M:%f', 'now')
