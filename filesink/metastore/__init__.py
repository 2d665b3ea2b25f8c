"""Announcing partitions: the contract of a metastore, triggers, policies, and one room for each metastore.

May use ``parts`` and below. The rooms of metastores know ``api`` and none of each other.
"""
