-- Which messages belong to batches in work. The messages themselves stay in the queue, in subqueue R, with the end of
-- the lease as their retry time: whoever else reads the queue returns them when the lease is over. While retry_time is
-- the lease that is kept here, a message is its claim's.
IF OBJECT_ID({claimed_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {claimed} (
        [claim_id] uniqueidentifier NOT NULL,
        [id] bigint NOT NULL,
        [bytes] bigint NOT NULL,
        [due] datetime NOT NULL,
        [lease] datetime NOT NULL
    );
    CREATE CLUSTERED INDEX [Index_Claim] ON {claimed} ([claim_id], [id]);
    CREATE NONCLUSTERED INDEX {claimed_index} ON {claimed} ([id]) INCLUDE ([lease]);
END
