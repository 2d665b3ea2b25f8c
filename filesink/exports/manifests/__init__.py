"""``_manifests``: lists of files as JSON, in the shape that Redshift's COPY and UNLOAD have."""
