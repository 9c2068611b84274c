"""What operators do: install tables, pause pipelines, limit slots, watch queues; and the user's own tables."""
