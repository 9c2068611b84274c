"""Dagster's view of the queues: resources, assets, the peek loop, jobs, schedules and checks, made from pipelines."""
