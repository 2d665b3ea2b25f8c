"""Settings of all tests."""

from hypothesis import settings

# The first example of a test pays for imports, and machines differ: no test fails by the clock.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
