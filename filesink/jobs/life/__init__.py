"""Jobs that run: states, the store of jobs, pipelines and their restarts. Uses ``plans``.

Only ``session`` and ``environment`` reach for Spark and the operating system.
"""
