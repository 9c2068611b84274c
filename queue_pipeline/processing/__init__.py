"""What happens to the messages of a batch: Spark reads, checks, transforms and writes them."""
