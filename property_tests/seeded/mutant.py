"""A seeded defect: a change of one place of the product that the simulation must find.

It replaces a text that occurs once in its file. When the product is rewritten there, the mutant is
rewritten too, never dropped: a test checks that all of them apply.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """``old`` in ``file`` becomes ``new``; ``name`` says what the defect is."""

    name: str
    file: str
    old: str
    new: str
