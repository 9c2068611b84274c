-- One row a claim: who holds it, at which attempt, until when, and how often its messages have failed.
-- Owner is NULL once it was given back.
CREATE TABLE IF NOT EXISTS {claims} (
    claim_id uuid NOT NULL PRIMARY KEY,
    queue text NOT NULL,
    owner text,
    attempt integer NOT NULL,
    messages integer NOT NULL,
    bytes bigint NOT NULL,
    first_row_version bigint NOT NULL,
    claimed_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    begun boolean NOT NULL DEFAULT false,
    failures integer NOT NULL DEFAULT 0,
    last_error text
);
CREATE INDEX IF NOT EXISTS {claims_index} ON {claims} (queue, first_row_version);
