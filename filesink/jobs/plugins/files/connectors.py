"""SeaTunnel's file connectors, each a source and a sink of the same store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import create_model, model_validator
from pydantic_core import PydanticCustomError

import filesink
from filesink.errors import JobError
from filesink.jobs.model.options import Options, option, words_of
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Sink, Source, Started
from filesink.jobs.plugins.files import places
from filesink.jobs.plugins.files.places import Place
from filesink.jobs.plugins.files.reading import read_files
from filesink.jobs.plugins.files.reading_options import FileReading
from filesink.jobs.plugins.files.writing import FileWriting, address_of, file_sink, laid_out
from filesink.ledger.identity import stream_sink_id
from filesink.operations.at_path import operations_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UPKEEP = frozenset({"rollback", "retain", "offline-compaction"})  # chains of their own, with nobody's rows
_MODES = {
    "APPEND_DATA": "append",
    "DROP_DATA": "overwrite",
    "ERROR_WHEN_DATA_EXISTS": "error_if_data_exists",
}


class _Files(Source):
    """Files of one store; each table has its own."""

    limits = ("bytes",)
    resumes = True
    place: ClassVar[type[Place]]
    options: Any

    def read(self, run: Run) -> Frames:
        """See ``Source.read``."""
        tables = self.options.tables or (self.options,)
        return {_table_name(table): read_files(table, table, run) for table in tables}


def _table_name(table: Any) -> str:
    return table.schema_.table if table.schema_ is not None else ""


class _FilesSink(Sink):
    """A ``FileSink`` for each table."""

    place: ClassVar[type[Place]]
    options: Any

    @property
    def notes(self) -> Sequence[str]:
        """See ``Plugin.notes``."""
        if "${transactionId}" in self.options.name_expression:
            return (
                f"sink {self.name} names files PREFIX-ID-NUMBER; an id is unique, as ${{transactionId}} is",
            )
        return ()

    def write(self, frames: Frames, run: Run) -> int | None:
        """See ``Sink.write``: a repeat finds that it was written, and other rows replace those."""
        mode: Any = _MODES[self.options.data_save_mode]
        rows = 0
        for name, frame in self._checked(frames):
            sink = file_sink(self.options, self.options, run, name).build()
            written = laid_out(self.options, frame)
            # An overwrite repeats itself; an append is known by its name.
            known: dict[str, Any] = {"txn_id": f"{run.job}-{run.vertex}", "on_repeated_txn": "replace"}
            report = sink.write(written, mode=mode, **(known if mode == "append" else {}))
            rows += report.rows
        return rows

    def check(self, frames: Frames, run: Run) -> None:
        """See ``Sink.check``."""
        for name, frame in self._checked(frames):
            file_sink(self.options, self.options, run, name).build()
            laid_out(self.options, frame)

    def start(self, frames: Frames, run: Run) -> Sequence[Started]:
        """See ``Sink.start``."""
        if self.options.data_save_mode != "APPEND_DATA":
            raise JobError(
                f"sink {self.name}: a stream appends; {self.options.data_save_mode} is for batches",
                code="JOB_REFUSED",
            )
        return [
            self._started(name, frame, run, f"checkpoint-{number}")
            for number, (name, frame) in enumerate(self._checked(frames))
        ]

    def _started(self, name: str, frame: DataFrame, run: Run, checkpoint: str) -> Started:
        builder = file_sink(self.options, self.options, run, name)
        # A batch appends, as all batches do; and who was rolled back is a new stream.
        appends = run.is_rolled_back or run.env.resumes
        sink = (builder.on_new_query("append") if appends else builder).build()
        location = f"{run.directory}/{checkpoint}"
        query = sink.start(laid_out(self.options, frame), checkpoint_location=location, **run.trigger)
        path = address_of(self.options, self.options, name)
        return Started(
            query=query,
            checkpoint=checkpoint,
            path=path,
            finish=sink.finish,
            version=lambda: filesink.open(path, self.options.storage(run)).version,
        )

    def plan_roll_back(self, run: Run, path: str, version: int) -> None:
        """See ``Sink.plan_roll_back``: not if others have written there since, be it others alone."""
        planned = filesink.plan_rollback(path, version, self.options.storage(run))
        chains = {epoch.sink for epoch in planned.epochs if epoch.kind not in _UPKEEP}
        # What is hidden becomes visible before, so that of another sink would be taken back as well.
        states = filesink.open(path, self.options.storage(run)).sinks()
        chains |= {one.id for one in states if one.open_rows or one.waiting_rows}
        others = chains - {stream_sink_id(None, query) for query in run.queries}
        if others:
            raise JobError(
                f"'{path}' cannot go back to version {version}: {len(others)} other sinks have written there "
                "since, or hold rows back, and a rollback would take back their rows as well",
                code="JOB_REFUSED",
            )

    def roll_back(self, run: Run, path: str, version: int) -> None:
        """See ``Sink.roll_back``: what is still hidden becomes visible first, or it would come back later."""
        storage = self.options.storage(run)
        for chain in filesink.open(path, storage).sinks():
            operations_at(path, storage, uid=chain.id).finish()
        filesink.rollback(path, version, storage)

    def _checked(self, frames: Frames) -> Iterator[tuple[str, DataFrame]]:
        if len(frames) > 1 and "${table_name}" not in self.options.path:
            raise JobError(
                f"sink {self.name} takes {len(frames)} tables: write ${{table_name}} into its path",
                code="JOB_VALUE",
            )
        yield from frames.items()


def _merged(name: str, *kinds: type[Options]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in kinds:
        found |= getattr(kind, name)
    return found


def _options(base: type[Options], place: type[Place], **more: Any) -> Any:
    """Options of a plugin, of files and of a store together."""
    made = create_model(
        f"{place.__name__}{base.__name__}", __base__=(PluginOptions, base, place), __module__=__name__, **more
    )
    for name in ("refused", "harmless", "without_effect"):
        setattr(made, name, _merged(name, base, place))
    return made


def _source(name: str, place: type[Place]) -> type[Source]:
    """A source whose options may stand in it, or in each of ``tables_configs``."""
    table = _options(FileReading, place)
    needed = {field: info for field, info in table.model_fields.items() if info.is_required()}
    words = [next(words for name, words, _ in words_of(table) if name == field)[0] for field in needed]
    tables = option((), doc="Several tables, each with all of this.", words=("tables_configs",))

    def whole(made: Any) -> Any:
        missing = [word for field, word in zip(needed, words, strict=True) if getattr(made, field) is None]
        if missing and not made.tables:
            raise PydanticCustomError("needs", "needs the option '{word}'", {"word": missing[0]})
        return made

    options = _options(
        FileReading,
        place,
        **{field: (info.annotation, _with_default(info)) for field, info in needed.items()},
        tables=(tuple.__class_getitem__((table, ...)), tables),
        __validators__={"whole": model_validator(mode="after")(whole)},
    )
    attributes = {"name": name, "options_type": options, "place": place, "__doc__": place.__doc__}
    return cast("type[Source]", type(name, (_Files,), attributes))


def _with_default(info: Any) -> Any:
    copied = copy(info)
    copied.default = None
    return copied


def _sink(name: str, place: type[Place]) -> type[Sink]:
    attributes = {
        "name": name,
        "options_type": _options(FileWriting, place),
        "place": place,
        "__doc__": place.__doc__,
    }
    return cast("type[Sink]", type(name, (_FilesSink,), attributes))


CONNECTORS: dict[str, type[Place]] = {
    "LocalFile": places.LocalPlace,
    "HdfsFile": places.HdfsPlace,
    "S3File": places.S3Place,
    "OssFile": places.OssPlace,
    "OssJindoFile": places.OssPlace,
    "ObsFile": places.ObsPlace,
    "CosFile": places.CosPlace,
    "FtpFile": places.FtpPlace,
    "SftpFile": places.SftpPlace,
}
SOURCES = tuple(_source(name, place) for name, place in CONNECTORS.items())
SINKS = tuple(_sink(name, place) for name, place in CONNECTORS.items() if not place.takes_writes)
REFUSED = {
    ("sink", name.lower()): place.takes_writes for name, place in CONNECTORS.items() if place.takes_writes
}
