-- End a subscription. Parameters: publisher, subscriber, type.
DELETE FROM {subscriptions} WHERE publisher_endpoint = ? AND subscriber_endpoint = ? AND message_type = ?
