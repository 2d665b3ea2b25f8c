"""HDFS, by its own protocol or over HTTP. The only place that imports its clients.

May use the modules of ``storage`` itself and the ground.
"""
