"""What a wrong argument is told: its name, what it takes, and what it was given."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from formats import (
    AvroWriterFactory,
    CompressWriterFactory,
    Encoder,
    FormatError,
    OrcBulkWriterFactory,
    OrcIndexes,
    ParquetEncryption,
    ParquetLayout,
    ParquetWriterFactory,
    SequenceFileWriterFactory,
    bounded,
)
from formats.arguments import instance_of

WRONG: list[tuple[Callable[[], object], str]] = [
    (
        lambda: ParquetWriterFactory(layout=ParquetLayout),
        "layout must be .*, got the class ParquetLayout",
    ),
    (lambda: ParquetWriterFactory(encryption="key"), "encryption must be of type ParquetEncryption, got str"),
    (lambda: ParquetWriterFactory(metadata="a=b"), "metadata must be of type Mapping, got str"),
    (lambda: ParquetWriterFactory(metadata={"a": "\ud800"}), r"metadata must map text .*, got '\\ud800'"),
    (lambda: AvroWriterFactory(metadata={1: "n"}), "metadata must map text .*, got 1"),
    (lambda: Encoder.avro(metadata=[("a", "b")]), "metadata must be of type Mapping, got list"),
    (lambda: OrcBulkWriterFactory(indexes={}), "indexes must be of type OrcIndexes, got dict"),
    (lambda: OrcBulkWriterFactory(dictionary_threshold=True), "_threshold must be a number .*, got True"),
    (lambda: OrcIndexes(row_stride=1e4), "row_stride must be a whole number, .*, got 10000.0"),
    (lambda: OrcIndexes(bloom_filter_fpp="0.1"), "bloom_filter_fpp must be .*, got '0.1'"),
    (lambda: OrcIndexes(bloom_filter_columns="n"), "must be a list of names of columns, got 'n'"),
    (lambda: ParquetLayout(sorted_by="n"), "sorted_by must be a list of names of columns, got 'n'"),
    (lambda: ParquetLayout(dictionary="n"), "must be 'all' or 'none' or a list of names .*, got 'n'"),
    (lambda: ParquetLayout(statistics=["n", 1]), r"statistics must be .*, got \['n', 1\]"),
    (lambda: ParquetLayout(page_index="false"), "page_index must be of type bool, got str"),
    (lambda: ParquetLayout(page_checksums=0), "page_checksums must be of type bool, got int"),
    (lambda: ParquetLayout(bloom_filters=["n"]), "bloom_filters must be of type Mapping, got list"),
    (lambda: ParquetLayout(bloom_filters={"n": None}), "in bloom_filters, must be a number .*, got None"),
    (lambda: ParquetLayout(timestamps=["micros"]), r"must be 'micros' or 'int96', got \['micros'\]"),
    (lambda: ParquetEncryption(open_kms=None, footer_key="f"), "open_kms must make .*, got NoneType"),
    (lambda: ParquetEncryption(open_kms=len, footer_key=b"f"), "footer_key must be of type str, got bytes"),
    (
        lambda: ParquetEncryption(open_kms=len, footer_key="f", column_keys={"k": "n"}),
        "column_keys must be a list of names of columns, got 'n'",
    ),
    (lambda: SequenceFileWriterFactory(key=["k"]), "key and value must be of type str, got list"),
    (lambda: CompressWriterFactory(encoder=None), "takes an Encoder"),
    (lambda: bounded(io.BytesIO(), limits=1 << 20), "limits must be of type ReadLimits, got int"),
]


@pytest.mark.parametrize(("make", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_argument_is_told_by_its_name(make: Callable[[], object], said: str) -> None:
    """When it is given: what is taken for something else, or ignored, would be found in files."""
    with pytest.raises(FormatError, match=said) as raised:
        make()
    assert raised.value.kind == "option"


def test_a_stranger_of_the_same_name_is_told_apart() -> None:
    """Such as the session of Spark Connect, which is another class ``SparkSession``."""
    stranger = type("Encoder", (), {"__module__": "elsewhere"})()
    with pytest.raises(FormatError, match="of type Encoder, got another Encoder, that of elsewhere"):
        instance_of(stranger, Encoder, name="encoder")
