"""Who else is at work below the base path while the query runs: batch jobs, operators, neighbours, intruders.

Acts on a ``Stage``, and may use everything below it, but no ending.
"""
