"""A job file becomes a plan, and plugins with their options: what runs, and what is shown of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from filesink.jobs.model.column_types import ddl
from filesink.jobs.model.env import Env, Mode
from filesink.jobs.model.options import words_of
from filesink.jobs.model.secret import Secret, without_secrets
from filesink.jobs.model.typed import Typing
from filesink.jobs.plans.graph import Wired, edges, pipelines
from filesink.jobs.plans.values import Pipeline, Plan, Vertex
from filesink.jobs.plugins.api import Plugin, PluginOptions, Source
from filesink.jobs.plugins.catalog import catalog
from filesink.jobs.plugins.registry import Registry
from filesink.jobs.text.place import Place, failure
from filesink.jobs.text.tree import Block, Sections
from filesink.jobs.text.values import PLUGINS

_SHOWN = 200  # characters of a value
_COMMON = frozenset(PluginOptions.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that could run.

    Attributes:
        plugins: by the ids of their vertices.
    """

    env: Env
    plan: Plan
    plugins: Mapping[str, Plugin]


def planned(sections: Sections, *, inline_secrets: bool = False, registry: Registry | None = None) -> Job:
    """The job that a file means. Nothing is opened, listed or written.

    Args:
        sections: what the file says.
        inline_secrets: whether secrets may stand in the file, as SeaTunnel has them.
        registry: plugins; by default ours, and those of installed packages.

    Raises:
        JobError: ``JOB_PLUGIN``, ``JOB_OPTION``, ``JOB_VALUE``, ``JOB_SECRET``, ``JOB_REFUSED``,
            ``JOB_GRAPH``; each with file and line.
    """
    known = catalog() if registry is None else registry
    typing = Typing(inline_secrets=inline_secrets)
    env = typing.typed(Env, sections.env, of="env")
    made = [
        _Made.of(section, number, block, env, known, typing)
        for section in PLUGINS
        for number, block in enumerate(getattr(sections, section), start=1)
    ]
    _check_whole(sections)
    _check_limits(env, made)
    _check_resumes(env, sections, made)
    if env.checkpoint_timeout is not None and not env.is_stream:
        typing.notes.append(f"{sections.file}: 'checkpoint.timeout' is for streams, and this is a batch")
    wired = [Wired(vertex=one.vertex, inputs=one.plugin.options.input) for one in made]
    drawn = pipelines(wired, edges(wired))
    notes = [*typing.notes, *_unread(drawn)]
    notes += [f"{one.vertex.place}: {note}" for one in made for note in one.plugin.notes]
    name = env.name or Path(sections.file).stem
    return Job(
        env=env,
        plan=Plan(name=name, mode=env.mode.value, pipelines=drawn, notes=tuple(notes)),
        plugins={one.vertex.id: one.plugin for one in made},
    )


def _check_whole(sections: Sections) -> None:
    for section, blocks in (("source", sections.source), ("sink", sections.sink)):
        if not blocks:
            raise failure(
                Place(sections.file, 1),
                f"the job has no {section}; write {section} {{ … }}",
                code="JOB_GRAPH",
            )


def _check_resumes(env: Env, sections: Sections, made: list[_Made]) -> None:
    """A batch that goes on where it was killed reads what can say where that was."""
    if env.resumes and env.mode is Mode.STREAMING:
        raise failure(
            Place(sections.file, 1),
            "'job.batch.resumable' is for job.mode = BATCH; a stream always goes on",
            code="JOB_VALUE",
        )
    for one in made:
        if env.resumes and isinstance(one.plugin, Source) and not one.plugin.resumes:
            raise failure(
                one.vertex.place,
                f"'job.batch.resumable' is for files, and source {one.plugin.name} always begins again",
                code="JOB_REFUSED",
            )


def _check_limits(env: Env, made: list[_Made]) -> None:
    """A limit that a source would not obey is refused, not ignored."""
    wanted = [("rows", env.rows_per_second), ("bytes", env.bytes_per_second)]
    for one in made:
        for unit, limit in wanted:
            if limit is None or not isinstance(one.plugin, Source):
                continue
            if not env.is_stream or unit not in one.plugin.limits:
                where = "a batch" if not env.is_stream else f"source {one.plugin.name}"
                raise failure(
                    one.vertex.place,
                    f"'read_limit.{unit}_per_second' has no counterpart for {where}",
                    code="JOB_REFUSED",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A vertex with its plugin."""

    vertex: Vertex
    plugin: Plugin

    @staticmethod
    def of(section: str, number: int, block: Block, env: Env, registry: Registry, typing: Typing) -> _Made:
        kind = registry.find(section, block.name, block.place)
        options = typing.typed(kind.options_type, block.options, of=f"{section} {kind.name}")
        _check_names(section, options, block, typing.notes)
        vertex = Vertex(
            id=f"{section}-{number}",
            kind=section,
            plugin=kind.name,
            options=tuple(_shown(options)),
            output=options.output or f"{section}-{number}",
            parallelism=options.parallelism or env.parallelism,
            place=block.place,
        )
        return _Made(vertex=vertex, plugin=kind(options))


def _check_names(section: str, options: PluginOptions, block: Block, notes: list[str]) -> None:
    if section == "source" and options.input:
        raise failure(block.place, f"source {block.name} takes no plugin_input", code="JOB_GRAPH")
    if section == "sink" and options.output:
        notes.append(f"{block.place}: sink {block.name} makes nothing, so its plugin_output changes nothing")


def _unread(drawn: tuple[Pipeline, ...]) -> Iterator[str]:
    for pipeline in drawn:
        for vertex in pipeline.vertices:
            if vertex.kind != "sink" and not pipeline.outputs_of(vertex.id):
                yield f"{vertex.place}: nobody takes '{vertex.output}', so it is not read"


def _shown(options: PluginOptions) -> Iterator[tuple[str, str]]:
    """Options that the file has, by their best words; secrets by their references."""
    for name, words, _ in words_of(type(options)):
        if name in options.model_fields_set and name not in _COMMON:
            yield words[0], _text(getattr(options, name))[:_SHOWN]


def _text(value: Any) -> str:  # noqa: PLR0911 - a table
    match value:
        case Secret():
            return str(value)
        case str():
            return without_secrets(value)
        case BaseModel():
            given = [(name, getattr(value, name)) for name in sorted(value.model_fields_set)]
            return f"{{{', '.join(f'{name} = {_text(one)}' for name, one in given)}}}"
        case Mapping():
            return f"{{{', '.join(f'{name} = {_text(one)}' for name, one in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(_text(one) for one in value)}]"
        case bool():
            return str(value).lower()
        case pa.DataType():
            return ddl(value)
        case _:
            return str(value)
