"""What a failure means: who is to blame for it, and what becomes of its messages."""
