-- name: add
-- Subscribes, or changes the address of a subscription; touches no row when nothing changes. Locks: the subscription's
-- row.
INSERT INTO {subscriptions} AS known (queueaddress, endpoint, topic)
SELECT CAST(:address AS text), CAST(:endpoint AS text), CAST(:topic AS text)
ON CONFLICT (endpoint, topic) DO UPDATE SET queueaddress = excluded.queueaddress
WHERE known.queueaddress <> excluded.queueaddress

-- name: remove
-- Ends a subscription; touches no row when there was none. Locks: the subscription's row.
DELETE FROM {subscriptions} WHERE endpoint = :endpoint AND topic = :topic

-- name: list
-- Every subscription, as its endpoint wrote it. Locks: none.
SELECT endpoint, topic, queueaddress
FROM {subscriptions}
ORDER BY endpoint, topic

-- name: subscribers
-- The addresses that want an event of these topics, each once, even if it wants several of them. The row is repeated
-- for several topics. Locks: none.
SELECT DISTINCT queueaddress
FROM {subscriptions}
WHERE topic IN (
VALUES
(CAST(:topic AS text))
)
ORDER BY queueaddress
