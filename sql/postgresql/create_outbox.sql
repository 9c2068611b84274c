-- Results that Spark executors staged, until the claim that they belong to is completed. Not logged: losing it in a
-- crash only means that the claim is processed again.
CREATE UNLOGGED TABLE IF NOT EXISTS {outbox} (
    claim_id uuid NOT NULL,
    task text NOT NULL,
    destination text NOT NULL,
    ordinal bigint NOT NULL,
    id uuid NOT NULL,
    ttl_ms integer NOT NULL,
    headers text NOT NULL,
    body bytea,
    PRIMARY KEY (claim_id, task, destination, ordinal)
);
