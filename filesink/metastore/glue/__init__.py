"""AWS Glue's catalog, through boto3. The only metastore that imports it.

May use ``metastore.api``, ``metastore.service_errors`` and the ground.
"""
