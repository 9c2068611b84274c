-- Every subscription, as its endpoint wrote it.
SELECT endpoint, topic, queueaddress
FROM {subscriptions}
ORDER BY endpoint, topic
