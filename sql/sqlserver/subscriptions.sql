-- name: add
-- Subscribes, or changes the address of a subscription; touches no row when nothing changes. The range lock keeps two
-- processes from inserting at once. MERGE would do the same in one statement, but not every server has it. Locks: the
-- key range of the subscription.
DECLARE @address nvarchar(200) = :address, @endpoint nvarchar(200) = :endpoint, @topic nvarchar(200) = :topic;
DECLARE @changed int;
UPDATE {subscriptions} WITH (UPDLOCK, HOLDLOCK)
SET QueueAddress = @address
WHERE Endpoint = @endpoint AND Topic = @topic AND QueueAddress <> @address;
SET @changed = @@ROWCOUNT;
INSERT INTO {subscriptions} (QueueAddress, Endpoint, Topic)
SELECT @address, @endpoint, @topic
WHERE NOT EXISTS (SELECT 1 FROM {subscriptions} WITH (UPDLOCK, HOLDLOCK) WHERE Endpoint = @endpoint AND Topic = @topic);
SELECT @changed + @@ROWCOUNT;

-- name: remove
-- Ends a subscription; touches no row when there was none. Locks: the subscription's row.
DELETE FROM {subscriptions} WHERE Endpoint = :endpoint AND Topic = :topic;
SELECT @@ROWCOUNT;

-- name: list
-- Every subscription, as its endpoint wrote it. Locks: shared while it reads.
SELECT Endpoint, Topic, QueueAddress
FROM {subscriptions}
ORDER BY Endpoint, Topic

-- name: subscribers
-- The addresses that want an event of these topics, each once, even if it wants several of them. The row is repeated
-- for several topics. Locks: shared while it reads.
SELECT DISTINCT QueueAddress
FROM {subscriptions}
WHERE Topic IN (
    SELECT v.Topic FROM (
VALUES
(:topic)
    ) AS v (Topic)
)
ORDER BY QueueAddress
