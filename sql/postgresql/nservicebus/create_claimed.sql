-- The messages of batches in work, moved out of the queue until their claim is completed.
CREATE TABLE IF NOT EXISTS {claimed} (
    claim_id uuid NOT NULL,
    id uuid NOT NULL,
    expires timestamp,
    headers text NOT NULL,
    body bytea,
    seq bigint NOT NULL,
    PRIMARY KEY (claim_id, seq)
);
