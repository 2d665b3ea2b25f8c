"""Any row format, compressed; and the reading of compressed files."""
