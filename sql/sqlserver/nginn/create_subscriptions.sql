-- Who subscribed to what at which publisher: the table of NGinn.MessageBus, shared by all buses of a database.
IF OBJECT_ID({subscriptions_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {subscriptions} (
        [publisher_endpoint] varchar(200) NOT NULL,
        [subscriber_endpoint] varchar(200) NOT NULL,
        [message_type] varchar(300) NOT NULL,
        [created_date] datetime NOT NULL,
        [expiration_date] datetime NULL,
        CONSTRAINT {key_index} PRIMARY KEY CLUSTERED ([publisher_endpoint], [message_type], [subscriber_endpoint])
    );
END
