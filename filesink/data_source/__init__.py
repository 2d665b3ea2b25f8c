"""``format("filesink")``: Spark runs the tasks and calls commit, instead of our engine.

The only room besides ``spark`` that imports pyspark. Builds its sink with ``filesink.sink``, so it stands
on top.
"""
