"""A table of Iceberg over the files of a path, in any catalog that ``pyiceberg`` speaks to."""
