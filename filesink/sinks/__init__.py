"""Sinks other than that of files, and the doors through which Spark writes into any sink.

A module, or a room, for each sink; none knows another. May use all rooms below and ``spark``, whose engine
``doors`` puts behind ``write``, ``start`` and ``foreach_batch``; knows no builder. Only ``collect`` knows the
tiers of the file sink, since it is one.
"""
