-- Who wants which events: a row an endpoint and topic.
CREATE TABLE IF NOT EXISTS {subscriptions} (
    QueueAddress TEXT NOT NULL,
    Endpoint TEXT NOT NULL,
    Topic TEXT NOT NULL,
    PRIMARY KEY (Endpoint, Topic)
);
