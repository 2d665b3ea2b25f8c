"""Any row format, compressed; and the reading of compressed files. Only here cramjam is imported.

May use the modules of ``formats`` itself, and no format.
"""
