"""What object stores share: multipart uploads, conditional requests, no directories.

Has everything but the client of one service, which implements ``api.Objects``. May use the modules of
``storage`` itself and the ground; imports no client.
"""
