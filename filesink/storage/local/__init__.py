"""Local disks and NFS, by system calls."""
