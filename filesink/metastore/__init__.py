"""Announcing partitions: the contract of a metastore, triggers, policies, and one room for each metastore.

May use ``parts`` and below; stands beside ``commit`` and does not know it. The rooms of metastores may use
``api``, ``service_errors`` and the ground, and none may use another.
"""
