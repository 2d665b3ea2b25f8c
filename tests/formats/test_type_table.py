"""What formats take and refuse, of the table of types in docs/formats.md."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from formats import ArrowWriterFactory, FormatError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "site"))
try:
    type_table = importlib.import_module("type_table")  # programs of that directory find one another there
finally:
    sys.path.pop(0)
TYPES, FACTORIES, ENCODERS = type_table.TYPES, type_table.FACTORIES, type_table.ENCODERS
OPAQUE = {"VARIANT": "to_json", "GEOMETRY": "st_asbinary", "GEOGRAPHY": "st_asbinary"}


@pytest.mark.parametrize("factory", [factory for factory, _ in FACTORIES.values()], ids=FACTORIES)
def test_refusals_of_nested_types_name_the_path(factory):
    """What is refused at the top is refused inside, too."""
    for name, kind in TYPES.items():
        try:
            factory.check_schema(pa.schema([("c", kind)]))
        except FormatError:
            inner = pa.schema([("c", pa.struct([pa.field("x", pa.list_(kind))]))])
            with pytest.raises(FormatError, match=r"column 'c\.x\[\]"):
                factory.check_schema(inner)
            assert name in {*OPAQUE, "TIME", "INTERVAL DAY TO SECOND", "VOID", "MAP<INT,INT>"}


@pytest.mark.parametrize(("name", "function"), OPAQUE.items())
@pytest.mark.parametrize(
    "code",
    [*(factory for factory, _ in FACTORIES.values()), *ENCODERS.values(), ArrowWriterFactory()],
    ids=lambda code: type(code).__name__,
)
def test_what_only_spark_understands_is_refused_with_the_way_out(code, name, function):
    """Its opaque bytes would be of no use to a reader."""
    with pytest.raises(FormatError, match=rf"column 'c' is a {name}: write {function}\(c\) instead"):
        code.check_schema(pa.schema([("c", TYPES[name])]))
