"""Jobs: SeaTunnel's job files on Spark.

``text`` reads files, ``model`` types their options, ``plans`` makes pipelines of them, ``plugins`` are what
they are made of, ``life`` runs them. Stands on top of the library: uses its public face, and only the command
line uses this room. Needs the extra ``jobs``.
"""
