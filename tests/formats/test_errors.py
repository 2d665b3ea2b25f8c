"""How somebody else's error reads within a message of ours."""

from __future__ import annotations

import pytest

from formats import ParquetWriterFactory
from formats.errors import told


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("no such carrier"), "KeyError: 'no such carrier'"),
        (ValueError("first line\n  second"), "ValueError: first line second"),
        (ValueError(), "ValueError"),
        (ValueError("\ud800"), "ValueError: \\ud800"),
        (ValueError("x" * 10_000), "ValueError: " + "x" * 300),
    ],
)
def test_it_is_one_short_line(error, words):
    """Kind and words, whatever they are."""
    assert told(error) == words


def test_our_own_classes_say_the_kind_alone():
    """What Arrow says of a value that it cannot write may hold the value."""
    assert told(ValueError("secret"), by=ParquetWriterFactory()) == "ValueError"
