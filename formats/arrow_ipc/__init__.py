"""Arrow's own file format."""
