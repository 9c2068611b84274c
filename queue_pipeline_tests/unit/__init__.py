"""Tests that need neither a database nor a network."""
