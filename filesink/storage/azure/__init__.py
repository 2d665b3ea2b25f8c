"""Azure Blob Storage: the client of ``objects``, its options and errors. Imports azure here only."""
