"""A table of PostgreSQL as a destination, exactly once.

    tasks      COPY into a table of the attempt's own, or into the target in a prepared transaction
    driver     checks ─▶ *decide* ─▶ one transaction: note the epoch, move its rows, drop its tables

Only ``connection`` and the modules that take one import psycopg; ``sink`` and ``settings`` do not, so that
``filesink`` is imported without it. ``copy`` knows bytes and types, and neither SQL nor connections.
"""
