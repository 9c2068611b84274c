"""What a tick of the peek loop looks after: runs and what they hold, queues, and the code that is loaded."""
