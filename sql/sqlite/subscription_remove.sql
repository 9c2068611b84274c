-- End a subscription; touches no row when there was none. Parameters: endpoint, topic.
DELETE FROM {subscriptions} WHERE Endpoint = ? AND Topic = ?
