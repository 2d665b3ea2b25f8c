"""The epoch on the driver: look, write, decide, publish, complete, and the replay of all that.

``epoch`` is the loop, ``committer`` makes files visible, ``publisher`` publishes and completes a decided
epoch. May use ``parts``, ``ledger``, ``api`` and below; never Spark, a metastore or a client of a store.
"""
