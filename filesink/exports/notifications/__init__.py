"""Who is told of each epoch: exporters that send the entries of the feed to a receiver, and note how far.

``notification`` has what all of them share, ``cursor`` how far a receiver was told, ``background`` the thread
in which a driver tells. The receivers stand beside each other: ``webhook``, ``queues``, ``kafka``,
``function``. May use what ``exports`` may, and of ``sinks`` what speaks with services.
"""
