"""What every exporter keeps. Subclass it with an exporter, a reader of its target, and somebody else.

The oracle lists the directory, as any reader does who knows nothing of exports.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import filesink
from compaction import compact
from filesink import Exporter, ExportError, ParquetWriterFactory, SinkDirectory, StateError
from filesink.buckets.partition_paths import partition_values
from tests.exports.interrupted import Killed, die, interrupted
from tests.sink_directory.written import Written

#: Columns of the first epochs, and of the later ones.
NARROW = pa.schema([("k", pa.string()), ("value", pa.string())])
WIDE = pa.schema([("k", pa.string()), ("value", pa.string()), ("more", pa.int64())])
ODD = [
    "a b",
    "50%",
    "%20",
    "é ü",
    "日本",
    "x=y",
    "q?&#",
    "plus+",
    None,
    "tab\t",
    "'quote'",
    "semi;colon",
    "@~!$",
]
Row = tuple[Any, ...]


def rows_of(table: Any) -> Counter[Row]:
    """The rows of an Arrow table, or of anything with ``to_pylist``, as a multiset; ``None`` if absent."""
    return Counter((row["k"], row["value"], row.get("more")) for row in table.to_pylist())


def listed(base: Path) -> Counter[Row]:
    """What is there for who lists: every file that is not hidden, columns of directories included."""
    found: Counter[Row] = Counter()
    for path in base.rglob("*.parquet"):
        relative = path.relative_to(base)
        if any(part.startswith((".", "_")) for part in relative.parts):
            continue
        values = dict(partition_values(str(relative.parent)))
        for row in pq.ParquetFile(path).read().to_pylist():
            found[values.get("k", row.get("k")), row["value"], row.get("more")] += 1
    return found


def _text(value: Any) -> str:
    """A reader of the suite's own may have the text of the directory."""
    return str(value).lower()


class Site:
    """A path that a sink writes to."""

    def __init__(
        self, base: Path, *, partitions: tuple[str, ...] = ("k",), made: int = 0, grace_ms: int = 0
    ) -> None:
        self.base = base
        self._written = Written(base, partitions=partitions)
        self._written.world.reader_grace_ms = grace_ms
        self._written.world.ids.made = made
        self._schema = NARROW  # no column ever goes

    def write(self, *values: str, k: str | None = "a", more: int | None = None) -> None:
        """An epoch with a row for each value."""
        self._written.write(self._batch(values, k, more))

    def overwrite(self, *values: str, k: str = "a", more: int | None = None) -> None:
        """An epoch that replaces everything."""
        self._written.overwrite(self._batch(values, k, more))

    def _batch(self, values: tuple[str, ...], k: str | None, more: int | None) -> pa.RecordBatch:
        if more is not None:
            self._schema = WIDE
        columns = {"k": [k] * len(values), "value": list(values), "more": [more] * len(values)}
        chosen = {name: columns[name] for name in self._schema.names}
        return pa.RecordBatch.from_pydict(chosen, schema=self._schema)

    def compact(self) -> None:
        """Merge what is small; no row comes or goes."""
        assert compact(self.base, ParquetWriterFactory()) is not None

    @property
    def directory(self) -> SinkDirectory:
        return filesink.open(self.base)

    def files(self) -> dict[str, bytes]:
        """Everything below the path."""
        return {str(path): path.read_bytes() for path in self.base.rglob("*") if path.is_file()}


class ExporterContract(ABC):
    """Tests of one exporter."""

    #: Parts of names of files; between any two calls of their functions the exporter may die.
    places: ClassVar[tuple[str, ...]] = ("/filesink/storage/local/store.py",)
    #: How many moments between these calls are tried, at most; evenly spread.
    moments: ClassVar[int] = 40
    #: Whether its readers find the columns that are only in the path.
    partitions: ClassVar[tuple[str, ...]] = ("k",)

    @abstractmethod
    def exporter(self, base: Path) -> Exporter:
        """One as a new process has it."""

    @abstractmethod
    def rows(self, base: Path) -> Counter[Row]:
        """What a reader of the target reads, by means of its own."""

    @abstractmethod
    def steps(self, base: Path) -> int:
        """How many steps the target has taken: commits, snapshots, logs."""

    @abstractmethod
    def foreign(self, base: Path) -> None:
        """Put a target there that somebody else has made."""

    @abstractmethod
    def intrude(self, base: Path) -> None:
        """Change the target, as somebody else does."""

    @pytest.fixture
    def site(self, tmp_path: Path) -> Site:
        return Site(tmp_path / "base", partitions=self.partitions)

    def export(self, site: Site) -> None:
        """By a new process."""
        filesink.export(site.base, self.exporter(site.base))

    def check(self, site: Site) -> None:
        """All readers agree, and the target says how far it is."""
        self.export(site)
        assert self.exporter(site.base).version(site.directory) == site.directory.version
        assert self.rows(site.base) == listed(site.base)
        assert self.findings(site) == []

    def findings(self, site: Site) -> list[str]:
        """What a check of the path and its export finds."""
        report = filesink.fsck(site.base, depth="quick", exporters=[self.exporter(site.base)])
        return [finding.code for finding in report.findings]

    # --- what readers see

    def test_readers_see_each_version(self, site: Site) -> None:
        """Appends to old and new partitions, more columns, a compaction, an overwrite, and on from there."""
        site.write("a", "b")
        self.check(site)
        site.write("c", k="b")
        self.check(site)
        site.write("d", more=7)
        self.check(site)
        site.write("e", k="c", more=8)
        self.check(site)
        site.compact()
        self.check(site)
        site.overwrite("f", "g", k="d")
        self.check(site)
        site.write("h", k="d")
        self.check(site)

    def test_a_check_tells_what_is_wrong(self, site: Site) -> None:
        """Nothing where nobody exports; what is older than ten minutes; what somebody else has changed."""
        site.write("a")
        assert self.findings(site) == []
        self.check(site)
        site.overwrite("b")  # as all of the suite, in 2023
        assert self.findings(site) == ["EXPORT_BEHIND"]
        self.check(site)
        self.intrude(site.base)
        assert "EXPORT_FOREIGN" in self.findings(site)

    def test_many_versions_at_once(self, site: Site) -> None:
        """A path that is years old, and one whose export was away for some time."""
        for value in "abc":
            site.write(value, k=value)
        site.compact() if not self.partitions else None
        self.check(site)
        site.write("d", k="a")
        site.compact()
        site.write("e", k="a", more=1)
        site.overwrite("f")
        site.write("g")
        self.check(site)

    def test_what_the_inventory_has_forgotten(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        """An export that was away for longer than epochs are remembered compares what is there."""
        site.write("a", k="a")
        site.write("b", k="b")
        self.check(site)
        site.overwrite("c", k="a")
        site.write("d", k="c", more=3)

        def forgotten(*_: object) -> None:
            raise StateError("that version has expired", code="HISTORY_EXPIRED")

        monkeypatch.setattr(SinkDirectory, "changes", forgotten)
        self.check(site)

    @pytest.mark.parametrize("k", ODD, ids=ascii)
    def test_names_that_have_to_be_escaped(self, site: Site, k: str | None) -> None:
        """A directory of any name that a value can have; a reader gets the value back."""
        site.write("a", k=k)
        site.write("b", k="plain")
        self.check(site)
        site.write("c", k=k)
        self.check(site)

    def test_a_base_path_that_has_to_be_escaped(self, tmp_path: Path) -> None:
        """Spaces and other alphabets above the path."""
        site = Site(tmp_path / "a b é=" / "base", partitions=self.partitions)
        site.write("a")
        self.check(site)

    def test_without_rows(self, site: Site) -> None:
        """Epochs that bring no file, and an overwrite by nothing."""
        site.write()
        self.export(site)
        site.write("a")
        self.check(site)
        site.write()
        self.export(site)
        assert self.rows(site.base) == listed(site.base)
        site.overwrite()
        self.export(site)
        assert self.rows(site.base) == listed(site.base) == Counter()
        site.write("b")
        self.check(site)

    def test_without_partitions(self, tmp_path: Path) -> None:
        """All files in the base path."""
        site = Site(tmp_path / "base", partitions=())
        site.write("a")
        self.check(site)
        site.write("b", k="b", more=1)
        self.check(site)

    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            (pa.int32(), [1, -5, None]),
            (pa.date32(), [date(2026, 1, 31), date(1969, 7, 20), None]),
            (pa.bool_(), [True, False]),
            (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-7.00")]),
        ],
        ids=str,
    )
    def test_partitions_of_other_types(self, tmp_path: Path, kind: Any, values: list[Any]) -> None:
        """Readers get values of the type back, which the directories show as text."""
        written = Written(tmp_path / "base")
        schema = pa.schema([("k", kind), ("value", pa.string())])
        for value in values:
            columns = {"k": [value], "value": [str(value)]}
            written.write(pa.RecordBatch.from_pydict(columns, schema=schema))
        filesink.export(written.base, self.exporter(written.base))
        found = self.rows(written.base)
        assert Counter({(_text(k), value, more): n for (k, value, more), n in found.items()}) == Counter(
            (_text(value), str(value), None) for value in values
        )

    @pytest.mark.parametrize(
        ("narrow", "wide", "values"),
        [
            (pa.int32(), pa.int64(), (1, 2**40)),
            (pa.float32(), pa.float64(), (1.5, 1e300)),
            (pa.decimal128(5, 2), pa.decimal128(9, 2), (Decimal("1.50"), Decimal("1234567.00"))),
        ],
        ids=str,
    )
    def test_a_column_becomes_wider(self, tmp_path: Path, narrow: Any, wide: Any, values: Any) -> None:
        """Rows of older files keep their values, beside those that need the wider type."""
        written = Written(tmp_path / "base")
        for kind, value in zip((narrow, wide), values, strict=True):
            schema = pa.schema([pa.field("k", pa.string()), pa.field("value", kind)])
            columns = {"k": ["a"], "value": [value]}
            written.write(pa.RecordBatch.from_pydict(columns, schema=schema))
            filesink.export(written.base, self.exporter(written.base))
        assert self.rows(written.base) == Counter(("a", value, None) for value in values)

    # --- whatever happens meanwhile

    def test_a_replay_changes_nothing(self, site: Site) -> None:
        """Whoever comes again, for the newest or for an older version, finds it done."""
        site.write("a")
        site.write("b")
        self.check(site)
        before, steps = site.files(), self.steps(site.base)
        for version in (2, 1, 2):
            exporter = self.exporter(site.base)
            exporter.version(site.directory)
            exporter.bring_to(site.directory, version)
        self.export(site)
        assert (site.files(), self.steps(site.base)) == (before, steps)

    @pytest.mark.parametrize("what", ["first", "append", "overwrite"])
    def test_killed_between_any_two_calls(self, tmp_path: Path, what: str) -> None:
        """The next driver brings the target to the version, in as many steps as if nothing had happened."""
        site = self._before(tmp_path / "there" / "base", what)
        for again, at in self._moments(site):
            with suppress(Killed), interrupted(self.places, at, die):
                self.export(site)
            self.check(site)
            again(at)

    def test_a_zombie_comes_back(self, tmp_path: Path) -> None:
        """Between any two calls of one driver another one does all of it: every file is there once."""
        site = self._before(tmp_path / "there" / "base", "append")
        for again, at in self._moments(site):
            with interrupted(self.places, at, lambda: self.export(site)):
                self.export(site)
            again(at)

    def test_a_zombie_of_an_older_version(self, tmp_path: Path) -> None:
        """Another driver has gone on to the next version meanwhile: the target does not go back."""
        site = self._before(tmp_path / "there" / "base", "append")

        def newer() -> None:
            later = Site(site.base, partitions=self.partitions, made=1000)
            later.overwrite("newer", k="z", more=2)
            self.export(site)

        for _, at in self._moments(site):
            with interrupted(self.places, at, newer):
                self.export(site)
            self.check(site)
            assert self.rows(site.base) == Counter([("z", "newer", 2)])

    def _moments(self, site: Site) -> Iterator[tuple[Callable[[int], None], int]]:
        """Moments of an export, with what compares its end to the usual; each finds the path as it was."""
        root = site.base.parent
        saved = root.with_name("saved")
        shutil.copytree(root, saved)
        with interrupted(self.places) as calls:
            self.export(site)
        assert calls.made > 2
        rows, steps = self.rows(site.base), self.steps(site.base)
        assert rows == listed(site.base)

        def same(at: int) -> None:
            assert (self.rows(site.base), self.steps(site.base)) == (rows, steps), at

        for at in range(0, calls.made, max(1, calls.made // self.moments)):
            shutil.rmtree(root)
            shutil.copytree(saved, root)
            yield same, at

    def _before(self, base: Path, what: str) -> Site:
        """A path with an epoch that is not exported yet."""
        site = Site(base, partitions=self.partitions)
        site.write("a", "b")
        if what != "first":
            self.export(site)
        site.overwrite("c", k="b") if what == "overwrite" else site.write("c", k="b", more=1)
        return site

    # --- others

    def test_a_foreign_target_is_refused(self, site: Site) -> None:
        """And left as it is, by every call."""
        site.write("a")
        self.foreign(site.base)
        before = site.files()
        for _ in range(2):
            with pytest.raises(ExportError) as raised:
                self.export(site)
            assert raised.value.code == "FOREIGN_TARGET"
        assert site.files() == before

    def test_a_target_that_somebody_else_has_changed(self, site: Site) -> None:
        """Is refused from then on, and left as it is; the sentence names a way out."""
        site.write("a")
        self.check(site)
        self.intrude(site.base)
        site.write("b")
        before = site.files()
        with pytest.raises(ExportError) as raised:
            self.export(site)
        assert raised.value.code == "CHANGED_TARGET"
        assert "export" in raised.value.message
        assert site.files() == before

    def test_a_path_that_was_removed_and_written_anew(self, site: Site) -> None:
        """A target of the path that was there before is foreign."""
        site.write("a")
        self.check(site)
        for found in [*site.base.rglob("*.parquet")]:
            if "_" not in str(found.relative_to(site.base))[0]:
                found.unlink()
        shutil.rmtree(site.base / "_filesink")
        again = Site(site.base, partitions=self.partitions, made=1000)
        again.write("b")
        with pytest.raises(ExportError) as raised:
            self.export(again)
        assert raised.value.code == "FOREIGN_TARGET"

    def test_dropped(self, site: Site) -> None:
        """Nothing is left of it, files stay, and it can be made anew."""
        site.write("a")
        before, names = site.files(), {path.name for path in site.base.iterdir()}
        self.check(site)
        filesink.drop_export(site.base, self.exporter(site.base))
        assert site.files() == before
        assert {path.name for path in site.base.iterdir()} == names
        assert self.exporter(site.base).version(site.directory) is None
        self.check(site)

    def test_files_that_are_not_parquet(self, tmp_path: Path) -> None:
        """Are refused in one sentence, before anything is made."""
        from tests.exports.lines import lines

        base = lines(tmp_path / "base")
        with pytest.raises(ExportError) as raised:
            filesink.export(base, self.exporter(base))
        assert raised.value.code == "NOT_EXPORTABLE"
        assert self.exporter(base).version(filesink.open(base)) is None
