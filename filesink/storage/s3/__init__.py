"""Amazon S3 and what speaks its protocol: the client of ``objects``, its session, options and errors."""
