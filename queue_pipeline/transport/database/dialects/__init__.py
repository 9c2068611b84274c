"""The dialects: what differs between the servers and their drivers."""
