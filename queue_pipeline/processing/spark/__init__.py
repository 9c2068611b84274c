"""Spark: its settings, sessions, servers and errors, and every private part of PySpark that is used."""
