"""Hadoop's SequenceFile and its Writables."""
