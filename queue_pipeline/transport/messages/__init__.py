"""Messages: headers and formats of the wire, and the values that carry them."""
