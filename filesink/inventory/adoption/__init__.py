"""How a path gets an inventory that was written without one, or whose inventory is damaged."""
