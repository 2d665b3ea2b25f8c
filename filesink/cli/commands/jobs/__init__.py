"""Commands about jobs: what files of jobs mean, and what becomes of jobs that run."""
