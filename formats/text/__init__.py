"""Values as text and lines of text: what CSV, JSON, XML and Excel share, and the format of plain lines.

May use the modules of ``formats`` itself, and no other format.
"""
