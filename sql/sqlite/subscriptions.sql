-- name: add
-- Subscribes, or changes the address of a subscription; touches no row when nothing changes. Locks: the database, as
-- every write.
INSERT INTO {subscriptions} AS known (QueueAddress, Endpoint, Topic)
VALUES (:address, :endpoint, :topic)
ON CONFLICT (Endpoint, Topic) DO UPDATE SET QueueAddress = excluded.QueueAddress
WHERE known.QueueAddress <> excluded.QueueAddress

-- name: remove
-- Ends a subscription; touches no row when there was none. Locks: the database, as every write.
DELETE FROM {subscriptions} WHERE Endpoint = :endpoint AND Topic = :topic

-- name: list
-- Every subscription, as its endpoint wrote it. Locks: none.
SELECT Endpoint, Topic, QueueAddress
FROM {subscriptions}
ORDER BY Endpoint, Topic

-- name: subscribers
-- The addresses that want an event of these topics, each once, even if it wants several of them. The row is repeated
-- for several topics. Locks: none.
SELECT DISTINCT QueueAddress
FROM {subscriptions}
WHERE Topic IN (
VALUES
(:topic)
)
ORDER BY QueueAddress
