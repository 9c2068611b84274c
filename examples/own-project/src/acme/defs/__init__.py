"""What the project defines; each folder is a component."""
