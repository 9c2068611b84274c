"""Programs of the project that are no part of the package: the demo, and a Spark cluster on one machine."""
