"""One page about a path: what ``status``, ``log`` and ``fsck --quick`` tell, as charts and tables.

A file of HTML without any script, font, image or link: it opens from a disk, and whatever a name holds,
nothing in it can run. Its size has a bound, however many files and epochs there are. May use
``sink_directory``, what ``operations.fsck`` has found, and the ground.
"""
