"""A trial on the user's own store: writers that are killed, an observer that lists all the while, a verdict.

May use what ``filesink.operations`` may. Without Spark. ``writer`` is a program of its own, since only a
process can be killed; ``torture`` starts and kills it, ``observer`` looks, ``input`` says what is written.
"""
