"""SeaTunnel's file connectors, each a source and a sink of the same store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic import create_model

from filesink.errors import JobError
from filesink.jobs.model.options import Options, option
from filesink.jobs.plugins.api import Frames, PluginOptions, Run, Sink, Source
from filesink.jobs.plugins.files import places
from filesink.jobs.plugins.files.places import Place
from filesink.jobs.plugins.files.reading import FileReading, read_files
from filesink.jobs.plugins.files.writing import FileWriting, file_sink, laid_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODES = {
    "APPEND_DATA": "append",
    "DROP_DATA": "overwrite",
    "ERROR_WHEN_DATA_EXISTS": "error_if_data_exists",
}


class _Files(Source):
    """Files of one store; each table has its own."""

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

    def start(self, frames: Frames, run: Run) -> Sequence[Any]:
        """See ``Sink.start``."""
        if self.options.data_save_mode != "APPEND_DATA":
            raise JobError(
                f"sink {self.name}: a stream appends; {self.options.data_save_mode} is for batches",
                code="JOB_REFUSED",
            )
        trigger = {"processing_time": f"{max(run.env.checkpoint_interval, 1)} milliseconds"}
        return [
            file_sink(self.options, self.options, run, name)
            .build()
            .start(
                laid_out(self.options, frame),
                checkpoint_location=f"{run.directory}/checkpoint-{number}",
                **trigger,
            )
            for number, (name, frame) in enumerate(self._checked(frames))
        ]

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


def _options(base: type[Options], place: type[Place], **more: Any) -> type[PluginOptions]:
    """Options of a plugin, of files and of a store together."""
    made = create_model(  # type: ignore[call-overload] # its keywords are fields
        f"{place.__name__}{base.__name__}", __base__=(PluginOptions, base, place), __module__=__name__, **more
    )
    for name in ("refused", "harmless", "without_effect"):
        setattr(made, name, _merged(name, base, place))
    return cast("type[PluginOptions]", made)


def _source(name: str, place: type[Place]) -> type[Source]:
    table = _options(FileReading, place)
    fields = {field: (info.annotation, info) for field, info in table.model_fields.items()}
    lacking = {
        field: (kind, _with_default(info)) for field, (kind, info) in fields.items() if info.is_required()
    }
    tables = (
        tuple[table, ...],
        option((), doc="Several tables, each with all of this.", words=("tables_configs",)),
    )  # type: ignore[valid-type]
    options = _options(FileReading, place, **lacking, tables=tables)
    attributes = {"name": name, "options_type": options, "place": place, "__doc__": place.__doc__}
    return cast("type[Source]", type(name, (_Files,), {**attributes, "_table": table}))


def _with_default(info: Any) -> Any:
    copied = info._copy() if hasattr(info, "_copy") else info  # noqa: SLF001
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


CONNECTORS = {
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
