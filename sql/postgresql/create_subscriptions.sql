-- Who wants which events, in the shape that all NServiceBus endpoints share: a row an endpoint and topic.
CREATE TABLE IF NOT EXISTS {subscriptions} (
    queueaddress varchar(200) NOT NULL,
    endpoint varchar(200) NOT NULL,
    topic varchar(200) NOT NULL,
    PRIMARY KEY (endpoint, topic)
);
