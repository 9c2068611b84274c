-- The columns that the first installations of this table lack.
ALTER TABLE {claims}
    ADD COLUMN begun boolean NOT NULL DEFAULT false,
    ADD COLUMN failures integer NOT NULL DEFAULT 0,
    ADD COLUMN last_error text
