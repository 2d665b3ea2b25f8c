"""Options with types: what may stand in a job file, in which unit, and what is said if it does not fit.

Uses ``text``; pydantic does the checking. Knows no plugin: their options are beside them, in ``plugins``.
"""
