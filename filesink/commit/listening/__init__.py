"""What the epoch tells listeners. Decides nothing, reads no store.

May use ``api``, ``ledger`` and the ground.
"""
