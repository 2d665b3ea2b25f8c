"""AWS Glue's catalog, through boto3. The only place that imports it for a metastore."""
