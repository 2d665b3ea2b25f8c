"""No generated test fails by the clock: a loaded machine is not a defect."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
