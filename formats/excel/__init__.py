"""Excel workbooks: one sheet of rows, written and read.

May use the modules of ``formats`` itself, ``text`` and ``compressed``, and no other format.
Only here xlsxwriter and openpyxl are imported.
"""
