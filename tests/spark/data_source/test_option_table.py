"""The tables of options say what happens: their defaults change nothing, and their words are taken."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from filesink import ConfigError
from filesink.data_source.option_table import WRITING, Option
from filesink.data_source.options import parse_options
from filesink.data_source.reading.option_table import READING
from filesink.data_source.reading.options import parse_read_options

_TEXT = re.compile(r"`([^`]+)`")
_FORMATS = {
    "Parquet": "parquet", "ORC": "orc", "Avro": "avro", "Arrow": "arrow", "CSV": "csv",
    "SequenceFile": "sequencefile",
}  # fmt: skip
_HIVE = {"table": "sales.orders", "metastore": "thrift://host:9083"}
#: What an option is nothing without.
_NEEDS: dict[str, dict[str, str]] = {
    "bucketColumnsInFile": {"bucketColumns": "day"},
    "createTable": _HIVE,
    "onNewColumns": _HIVE,
    "onRepeatedTxn": {"txnId": "t"},
    "keyColumn": {"valueColumn": "v"},
}


def options(option: Option, text: str | None) -> dict[str, str]:
    """Those of a call that gives ``option``, with what it is nothing without; ``None`` leaves it out."""
    about = option.meaning.partition(":")[0].partition(",")[0]
    kind = {"format": _FORMATS[about]} if about in _FORMATS else {}
    needed = {"path": "/data/out", **kind, **_NEEDS.get(option.name, {})}
    return needed if text is None else {**needed, option.name: text}


def default(option: Option) -> str | None:
    """The text that stands for the default, if one does."""
    found = _TEXT.fullmatch(option.default)
    return found[1] if found else None


def words(option: Option) -> list[str]:
    """The words that it takes, if these are all."""
    return _TEXT.findall(option.takes) if re.fullmatch(r"(`\w+`(, )?)+", option.takes) else []


@pytest.mark.parametrize("option", [one for one in WRITING if default(one)], ids=lambda one: one.name)
def test_a_default_of_writing_is_what_holds_without_it(option: Option) -> None:
    """Given or left out, the options are the same."""
    assert repr(parse_options(options(option, default(option)))) == repr(parse_options(options(option, None)))


@pytest.mark.parametrize("option", [one for one in READING if default(one)], ids=lambda one: one.name)
def test_a_default_of_reading_is_what_holds_without_it(option: Option) -> None:
    """Given or left out, the plan is the same."""
    given, left_out = (parse_read_options(options(option, text)) for text in (default(option), None))
    assert vars(given.assigner) == vars(left_out.assigner)
    assert replace(given, assigner=left_out.assigner) == left_out


@pytest.mark.parametrize(
    ("parse", "option"),
    [
        pytest.param(parse, option, id=f"{option.name} of {parse.__name__}")
        for parse, table in ((parse_options, WRITING), (parse_read_options, READING))
        for option in table
        if words(option)
    ],
)
def test_words_are_all_that_is_taken(parse: Any, option: Option) -> None:
    """Each of them, and no other."""
    for word in words(option):
        moved = {"moveTo": "/data/read", "stateLocation": "/data/state"} if word == "move" else {}
        parse({**options(option, word), **moved})
    with pytest.raises(ConfigError) as refused:
        parse(options(option, "else"))
    assert refused.value.code == "BAD_VALUE"
