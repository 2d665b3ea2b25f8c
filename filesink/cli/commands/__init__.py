"""One module for what is asked together: how a path is, its epochs, its files, its faults, their remedies."""
