"""Local disks and NFS, by system calls.

May use the modules of ``storage`` itself, ``os`` and the ground.
"""
