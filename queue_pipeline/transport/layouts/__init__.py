"""What the rows of a queue's table mean: those of the NServiceBus SQL transport, and those of NGinn.MessageBus."""
