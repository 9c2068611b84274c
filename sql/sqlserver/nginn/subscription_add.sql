-- Subscribe, or hold a subscription for longer. Parameters: seconds until it expires (-1 = never), publisher,
-- subscriber, type.
DECLARE @seconds int = ?, @publisher varchar(200) = ?, @subscriber varchar(200) = ?, @type varchar(300) = ?;
UPDATE {subscriptions} WITH (UPDLOCK, HOLDLOCK)
SET expiration_date = DATEADD(second, NULLIF(@seconds, -1), GETDATE())
WHERE publisher_endpoint = @publisher AND subscriber_endpoint = @subscriber AND message_type = @type;
IF @@ROWCOUNT = 0
    INSERT INTO {subscriptions} (publisher_endpoint, subscriber_endpoint, message_type, created_date, expiration_date)
    VALUES (@publisher, @subscriber, @type, GETDATE(), DATEADD(second, NULLIF(@seconds, -1), GETDATE()));
