"""Seeds that find a defect when it is put back; ``test_found`` asks for the same defects directly."""

from __future__ import annotations

#: Seed to what it finds.
SEEDS: dict[int, str] = {
    14: "a record that another driver left was published by before its name was durable",
    64: "a start that crashed left its probe for ever",
    301: "a file that could not be looked at was reported as lost",
    550: "a driver that came late won a slot that had been folded away",
}
