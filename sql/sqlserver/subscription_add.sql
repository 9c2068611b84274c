-- Subscribe, or change the address of a subscription; touches no row when it is there already. The range lock keeps two from
-- inserting at once. MERGE would do the same in one statement, but not every server has it. Parameters: address, endpoint, topic.
DECLARE @address nvarchar(200) = ?, @endpoint nvarchar(200) = ?, @topic nvarchar(200) = ?;
DECLARE @changed int;
UPDATE {subscriptions} WITH (UPDLOCK, HOLDLOCK)
SET QueueAddress = @address
WHERE Endpoint = @endpoint AND Topic = @topic AND QueueAddress <> @address;
SET @changed = @@ROWCOUNT;
INSERT INTO {subscriptions} (QueueAddress, Endpoint, Topic)
SELECT @address, @endpoint, @topic
WHERE NOT EXISTS (SELECT 1 FROM {subscriptions} WITH (UPDLOCK, HOLDLOCK) WHERE Endpoint = @endpoint AND Topic = @topic);
SELECT @changed + @@ROWCOUNT;
