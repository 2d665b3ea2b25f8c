"""Envelopes of change events as rows with a kind, and rows with a kind as envelopes: ``filesink.changes``.

All of it is expressions of Spark, computed in the JVM: no row passes through Python. ``envelope`` has what
all envelopes share, ``values`` what is inside of them; the others know one of them each. May use the ground.
"""
