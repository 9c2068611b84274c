"""The databases beneath the transport: statements, connections and what differs between servers."""
