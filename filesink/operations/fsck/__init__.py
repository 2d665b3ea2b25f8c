"""What is wrong with a path: its ledgers, its inventory, its directories, its files.

Compares what the ledgers have decided with what the inventory says, with a listing, and with the ends of the
files. Changes nothing. May use what ``operations`` may.
"""
