-- Results that Spark executors staged, until the claim that they belong to is completed: one row a message, numbered as
-- they were staged, and one row with the manifest of each job. Not logged: losing it in a crash only means that the claim
-- is processed again. An identity column needs no right on a sequence.
CREATE UNLOGGED TABLE IF NOT EXISTS {outbox} (
    claim_id uuid NOT NULL,
    task text NOT NULL,
    pile integer NOT NULL,
    ordinal bigint GENERATED ALWAYS AS IDENTITY,
    id uuid NOT NULL,
    milliseconds bigint NOT NULL,
    headers text NOT NULL,
    body bytea,
    PRIMARY KEY (claim_id, task, pile, ordinal)
);
