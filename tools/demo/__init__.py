"""`scripts/demo`: the worked example from an empty folder to results, with the UI or without."""
