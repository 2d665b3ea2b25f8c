"""The command line: ``filesink``, and ``python -m filesink``. Prints what the library finds, and no more.

May use the public face (``filesink`` itself), ``operations``, ``compaction`` and the ground, and nothing
behind them: what a command needs and the public face lacks is added there. Nobody imports this room. Needs
the extra ``cli``; ``typer`` and ``rich`` are imported nowhere else.
"""
