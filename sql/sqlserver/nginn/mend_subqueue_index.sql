-- The index by which messages are found, as NGinn.MessageBus makes it: by subqueue, in the order in which they are due.
CREATE NONCLUSTERED INDEX {index} ON {queue} ([subqueue] ASC, [retry_time] ASC) INCLUDE ([id])
