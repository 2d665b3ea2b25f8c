"""From a job file to pipelines: who feeds whom, which belong together, what runs. Uses ``plugins``."""
