"""``format("filesink")``: Spark runs the tasks and calls commit, instead of our engine.

Stands on top: builds its sink with ``filesink.sink`` and may use every room. Besides ``spark`` it is the only
room that imports pyspark at run time. Keeps nothing between two calls, since Spark makes each call in a new
process.
"""
