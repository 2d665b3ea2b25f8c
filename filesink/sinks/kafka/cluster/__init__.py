"""A cluster as the client shows it: connections, what its errors mean, what its topics are like.

Knows settings and loads, and nothing of epochs, files and transactions.
"""
