"""Addresses: what people write, and the tables that they mean."""
