"""XML of flat records."""
