"""The directory of a sink as a source: what its inventory says, through the face of ``sink_directory``."""
