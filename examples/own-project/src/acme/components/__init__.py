"""Components of the project itself."""
