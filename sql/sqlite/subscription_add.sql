-- Subscribe, or change the address of a subscription; touches no row when it is there already.
-- Parameters: address, endpoint, topic.
INSERT INTO {subscriptions} AS known (QueueAddress, Endpoint, Topic)
VALUES (?1, ?2, ?3)
ON CONFLICT (Endpoint, Topic) DO UPDATE SET QueueAddress = excluded.QueueAddress
WHERE known.QueueAddress <> excluded.QueueAddress
