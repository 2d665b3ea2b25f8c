"""Pieces of binary files that more than one format has: numbers of variable length, markers between blocks.

Knows bytes and no columns. May use the modules of ``formats`` beside its folders, and no format.
"""
