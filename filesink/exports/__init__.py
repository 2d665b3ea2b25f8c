"""What is kept beside the files of a path, for readers who do not list it: logs of tables, manifests.

An exporter brings its target to a version of the path's inventory. It reads the public face
(``sink_directory``) and nothing behind it, may write with ``storage``, and is never part of a commit: it
runs when an epoch is complete. May also use the ground. No exporter knows another.
"""
