"""What the driver does with parts between the tasks of an epoch and its record: close, merge, count, verify.

``open_parts`` closes what is due, ``closed_parts`` says what becomes of it, ``merging`` makes the files of an
epoch and ``merger`` one of them. Nothing is removed here: inputs of a merge are only named for removal.
"""
