-- Who wants which events, in the shape that all NServiceBus endpoints share: a row an endpoint and topic.
IF OBJECT_ID({subscriptions_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {subscriptions} (
        [QueueAddress] nvarchar(200) NOT NULL,
        [Endpoint] nvarchar(200) NOT NULL,
        [Topic] nvarchar(200) NOT NULL,
        PRIMARY KEY ([Endpoint], [Topic])
    );
END
