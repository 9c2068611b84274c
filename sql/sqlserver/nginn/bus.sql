-- name: sequence_open
-- Makes sure that a sequence has a row, locks it and returns its state. Locks: the sequence's row, until the
-- transaction ends.
DECLARE @data varchar(max) = :state, @id varchar(100) = :sequence;
INSERT INTO {sequences} (id, data, last_modified)
SELECT @id, @data, GETDATE()
WHERE NOT EXISTS (SELECT 1 FROM {sequences} WITH (UPDLOCK, HOLDLOCK) WHERE id = @id);
SELECT data FROM {sequences} WITH (UPDLOCK, ROWLOCK) WHERE id = @id;

-- name: sequence_save
-- Keeps the state of a sequence. Locks: the sequence's row.
UPDATE {sequences} SET data = :state, last_modified = GETDATE() WHERE id = :sequence

-- name: sequence_end
-- A sequence is complete. Locks: the sequence's row.
DELETE FROM {sequences} WHERE id = :sequence

-- name: subscription_add
-- Subscribes, or holds a subscription for longer: seconds until it expires, -1 = never. Locks: the key range of the
-- subscription.
DECLARE @seconds int = :seconds, @publisher varchar(200) = :publisher, @subscriber varchar(200) = :subscriber,
    @type varchar(300) = :message_type;
UPDATE {subscriptions} WITH (UPDLOCK, HOLDLOCK)
SET expiration_date = DATEADD(second, NULLIF(@seconds, -1), GETDATE())
WHERE publisher_endpoint = @publisher AND subscriber_endpoint = @subscriber AND message_type = @type;
IF @@ROWCOUNT = 0
    INSERT INTO {subscriptions} (publisher_endpoint, subscriber_endpoint, message_type, created_date, expiration_date)
    VALUES (@publisher, @subscriber, @type, GETDATE(), DATEADD(second, NULLIF(@seconds, -1), GETDATE()));

-- name: subscription_remove
-- Ends a subscription. Locks: the subscription's row.
DELETE FROM {subscriptions}
WHERE publisher_endpoint = :publisher AND subscriber_endpoint = :subscriber AND message_type = :message_type;
SELECT @@ROWCOUNT;

-- name: subscription_expire
-- Ends a subscription whose time is over. Locks: the subscription's row.
DELETE FROM {subscriptions}
WHERE publisher_endpoint = :publisher AND subscriber_endpoint = :subscriber AND message_type = :message_type
    AND expiration_date <= GETDATE();
SELECT @@ROWCOUNT;

-- name: subscription_list
-- Every subscription at a publisher ('' = at all), with the seconds until it expires. Locks: shared while it reads.
SELECT publisher_endpoint, subscriber_endpoint, message_type, DATEDIFF_BIG(second, GETDATE(), expiration_date)
FROM {subscriptions}
WHERE :publisher = '' OR publisher_endpoint = :publisher
ORDER BY publisher_endpoint, message_type, subscriber_endpoint
