"""What a ``FileSink`` is made of, and what it does when it is built: the only place where the rooms meet.

``filesink.sink`` adds the ways to begin. May use every room but ``data_source``, ``jobs``, ``page``, ``cli``.
"""
