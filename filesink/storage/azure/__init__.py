"""Azure Blob Storage: the client of ``objects``, its options and errors. Only here azure is imported.

May use the modules of ``storage`` itself, ``objects`` and the ground.
"""
