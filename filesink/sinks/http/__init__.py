"""Records as requests of HTTP: an asynchronous sink, at least once, each request with an idempotency key.

urllib3 is imported in ``client`` alone. It is what requests and botocore send with, and has what they do not
offer: one pool of connections that threads may share, and sockets that can be cut when a task is cancelled.
"""
