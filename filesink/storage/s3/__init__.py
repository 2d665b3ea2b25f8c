"""Amazon S3 and stores with its protocol: the client of ``objects``, its session, options and errors.

Only here botocore and boto3 are imported for a store. May use the modules of ``storage`` itself, ``objects``
and the ground.
"""
