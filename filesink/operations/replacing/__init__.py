"""Operations that replace finished files or remove them: retention, rollback, erasure. Each is one epoch.

May use what ``filesink.operations`` may. Without Spark.
"""
