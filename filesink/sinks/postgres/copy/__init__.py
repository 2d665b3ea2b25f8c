"""Columns of record batches as rows of ``COPY … WITH (FORMAT binary)``: types, fields, bytes.

May use errors of ``filesink``, pyarrow and numpy; no connections, no SQL.
"""
