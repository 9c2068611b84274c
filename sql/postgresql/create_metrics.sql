-- Completed claims, for plots and status without scanning.
CREATE TABLE IF NOT EXISTS {metrics} (
    claim_id uuid NOT NULL,
    queue text NOT NULL,
    owner text NOT NULL,
    attempt integer NOT NULL,
    messages integer NOT NULL,
    bytes bigint NOT NULL,
    sent integer NOT NULL,
    duration_ms bigint NOT NULL,
    completed_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS {metrics_index} ON {metrics} (queue, completed_at);
