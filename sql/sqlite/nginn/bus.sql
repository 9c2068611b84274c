-- name: sequence_open
-- Makes sure that a sequence has a row. Locks: the database, as every write.
INSERT INTO {sequences} (data, id, last_modified)
SELECT CAST(:state AS text), CAST(:sequence AS text), strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE TRUE
ON CONFLICT (id) DO NOTHING

-- name: sequence_lock
-- The state of a sequence, locked until the transaction ends. Locks: none of its own.
SELECT data FROM {sequences} WHERE id = :sequence

-- name: sequence_save
-- Keeps the state of a sequence. Locks: the database, as every write.
UPDATE {sequences} SET data = :state, last_modified = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE id = :sequence

-- name: sequence_end
-- A sequence is complete. Locks: the database, as every write.
DELETE FROM {sequences} WHERE id = :sequence

-- name: subscription_add
-- Subscribes, or holds a subscription for longer: seconds until it expires, -1 = never. Locks: the database, as every
-- write.
INSERT INTO {subscriptions} (publisher_endpoint, subscriber_endpoint, message_type, created_date, expiration_date)
SELECT
    m.publisher, m.subscriber, m.type, strftime('%Y-%m-%d %H:%M:%f', 'now'),
    CASE
        WHEN m.seconds = -1 THEN NULL
        ELSE strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+d seconds', m.seconds))
    END
FROM (
    SELECT
        CAST(:seconds AS bigint) AS seconds,
        CAST(:publisher AS text) AS publisher,
        CAST(:subscriber AS text) AS subscriber,
        CAST(:message_type AS text) AS type
) AS m
WHERE TRUE
ON CONFLICT (publisher_endpoint, message_type, subscriber_endpoint)
DO UPDATE SET expiration_date = excluded.expiration_date

-- name: subscription_remove
-- Ends a subscription. Locks: the database, as every write.
DELETE FROM {subscriptions}
WHERE publisher_endpoint = :publisher AND subscriber_endpoint = :subscriber AND message_type = :message_type

-- name: subscription_expire
-- Ends a subscription whose time is over. Locks: the database, as every write.
DELETE FROM {subscriptions}
WHERE publisher_endpoint = :publisher AND subscriber_endpoint = :subscriber AND message_type = :message_type
    AND expiration_date <= strftime('%Y-%m-%d %H:%M:%f', 'now')

-- name: subscription_list
-- Every subscription at a publisher ('' = at all), with the seconds until it expires. Locks: none.
SELECT
    publisher_endpoint, subscriber_endpoint, message_type,
    CAST((julianday(expiration_date) - julianday('now')) * 86400 AS INTEGER)
FROM {subscriptions}
WHERE :publisher = '' OR publisher_endpoint = :publisher
ORDER BY publisher_endpoint, message_type, subscriber_endpoint
