"""Buckets, policies, names and strategies: a wrong type is a typed error when they are made, not later."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from compaction import FileCompactStrategy
from filesink import ConfigError, OutputFileConfig, RollingPolicy
from filesink.buckets.assigner import BucketAssigner
from filesink.buckets.contract import BucketContext
from filesink.errors import FilesinkError
from filesink.parts.plan import WriterLimits
from filesink.parts.rolling import Allowance

_TEXT, _SIZE, _DURATION, _NUMBER = (str,), (int, str), (int, str, timedelta), (int,)
#: What is called, and each parameter with a good value and the types that it takes.
CALLS: dict[str, tuple[Callable[..., object], dict[str, tuple[Any, tuple[type, ...]]]]] = {
    "date_time_bucket_assigner": (
        BucketAssigner.date_time_bucket_assigner,
        {
            "format_str": ("yyyy", _TEXT),
            "timezone_id": ("UTC", (str, type(None))),
            "column": ("at", (str, type(None))),
            "null_bucket": ("none", (str, type(None))),
        },
    ),
    "partition_bucket_assigner": (
        lambda column: BucketAssigner.partition_bucket_assigner("b", column),
        {"column": ("a", _TEXT)},
    ),
    "expression_bucket_assigner": (
        BucketAssigner.expression_bucket_assigner,
        {"expression": ("string(a)", _TEXT)},
    ),
    "default_rolling_policy": (
        RollingPolicy.default_rolling_policy,
        {
            "part_size": ("1 MiB", _SIZE),
            "rollover_interval": ("1 min", _DURATION),
            "inactivity_interval": (timedelta(minutes=1), _DURATION),
        },
    ),
    "on_checkpoint_rolling_policy": (
        RollingPolicy.on_checkpoint_rolling_policy,
        {"part_size": (1, (*_SIZE, type(None))), "max_rows": (1, (*_NUMBER, type(None)))},
    ),
    "OutputFileConfig": (
        OutputFileConfig,
        {"part_prefix": ("part", _TEXT), "part_suffix": (".x", (str, type(None)))},
    ),
    "FileCompactStrategy": (
        FileCompactStrategy,
        {
            "size_threshold": ("1 MiB", (*_SIZE, type(None))),
            "checkpoints": (1, (*_NUMBER, type(None))),
            "max_age": ("1 min", (*_DURATION, type(None))),
            "max_concurrent": (1, (*_NUMBER, type(None))),
        },
    ),
    "WriterLimits": (WriterLimits, {"memory": (1, _NUMBER), "open_files": (1, _NUMBER)}),
    "BucketContext": (BucketContext, {"processing_time_ms": (1, _NUMBER), "time_zone": ("UTC", _TEXT)}),
    "Allowance": (Allowance, {"bytes": (1, (int, type(None))), "rows": (1, (int, type(None)))}),
}
VALUES = (
    None,
    True,
    1,
    1.5,
    float("nan"),
    "x",
    b"x",
    timedelta(1),
    [],
    ["a"],
    {"a": 1},
    object(),
    str,
    "\ud800",
)
CASES = [(name, parameter) for name, (_, parameters) in CALLS.items() for parameter in parameters]


@pytest.mark.parametrize(("name", "parameter"), CASES, ids=lambda text: text)
def test_a_wrong_type_is_a_config_error(name, parameter):
    """Whatever is given; one of the right type is taken, or refused by a typed error as well."""
    call, parameters = CALLS[name]
    good = {each: value for each, (value, _) in parameters.items()}
    call(**good)
    for value in VALUES:
        if type(value) in parameters[parameter][1]:
            try:
                call(**{**good, parameter: value})
            except FilesinkError:
                continue
        else:
            with pytest.raises(ConfigError) as error:
                call(**{**good, parameter: value})
            assert len(str(error.value)) < 300
            assert str(error.value).isprintable()
