-- Who subscribed to what at which publisher: the table of NGinn.MessageBus, shared by all buses of a database.
CREATE TABLE IF NOT EXISTS {subscriptions} (
    publisher_endpoint varchar(200) NOT NULL,
    subscriber_endpoint varchar(200) NOT NULL,
    message_type varchar(300) NOT NULL,
    created_date timestamp NOT NULL,
    expiration_date timestamp,
    PRIMARY KEY (publisher_endpoint, message_type, subscriber_endpoint)
);
