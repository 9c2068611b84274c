"""NGinn.MessageBus: its queue tables, read and written as they are, beside the .NET processes that use them."""
