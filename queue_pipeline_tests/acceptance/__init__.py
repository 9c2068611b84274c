"""Tests through the front doors: the command line and Dagster."""
