-- Every subscription, as its endpoint wrote it.
SELECT Endpoint, Topic, QueueAddress
FROM {subscriptions}
ORDER BY Endpoint, Topic
