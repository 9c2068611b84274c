-- Who subscribed to what at which publisher: the table of NGinn.MessageBus, shared by all buses of a database.
CREATE TABLE IF NOT EXISTS {subscriptions} (
    publisher_endpoint TEXT NOT NULL,
    subscriber_endpoint TEXT NOT NULL,
    message_type TEXT NOT NULL,
    created_date TEXT NOT NULL,
    expiration_date TEXT,
    PRIMARY KEY (publisher_endpoint, message_type, subscriber_endpoint)
);
