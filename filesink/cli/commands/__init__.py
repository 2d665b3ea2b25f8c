"""One module for what is asked together: how a path is, its epochs, its files, what is wrong, what is to be done."""
