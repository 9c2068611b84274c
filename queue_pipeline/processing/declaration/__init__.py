"""What a person writes: a pipeline, its policy for failures, and the outcomes that its transform may return."""
