"""What sources and sinks of files share: where files lie, in which format, and lines of text.

SeaTunnel has a connector for each kind of store, with options of its own; here they become a path and the
options of a store, and everything else is the same.
"""
