"""What leaves a batch: results related to their messages, checked, and made ready to send."""
