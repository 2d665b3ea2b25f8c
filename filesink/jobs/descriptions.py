"""What a job file may say: plugins and their options, for people and for editors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo

from filesink.errors import JobError
from filesink.jobs.model.options import words_of
from filesink.jobs.plugins.api import Plugin, Sink, Source
from filesink.jobs.plugins.catalog import catalog
from filesink.jobs.text.place import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDescription:
    """One option.

    Attributes:
        words: its names, the best one first.
        default: as it may be written; ``needed`` if it has to be there.
    """

    words: tuple[str, ...]
    type: str
    default: str
    unit: str
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDescription:
    """One plugin.

    Attributes:
        kind: ``source``, ``transform`` or ``sink``.
    """

    kind: str
    name: str
    doc: str
    options: tuple[OptionDescription, ...]


def plugins(name: str | None = None) -> list[PluginDescription]:
    """All plugins, or those of one name.

    Raises:
        JobError: ``JOB_PLUGIN``; there is none, and the nearest is named.
    """
    known = catalog().plugins
    found = [one for one in known if name is None or one.name.lower() == name.lower()]
    if name is not None and not found:
        near = nearest(name, [one.name for one in known])
        raise JobError(f"there is no plugin '{name}'{near}", code="JOB_PLUGIN")
    return [_described(one) for one in found]


def _described(plugin: type[Plugin]) -> PluginDescription:
    kind = "source" if issubclass(plugin, Source) else "sink" if issubclass(plugin, Sink) else "transform"
    options = tuple(_option(words, info) for _, words, info in words_of(plugin.options_type))
    doc = (plugin.__doc__ or "").strip().split("\n", 1)[0].replace("``", "")
    return PluginDescription(kind=kind, name=plugin.name, doc=doc, options=options)


def _option(words: tuple[str, ...], info: FieldInfo) -> OptionDescription:
    extra: Any = info.json_schema_extra or {}
    needed = info.is_required()
    return OptionDescription(
        words=words,
        type=_type(info.annotation),
        default="needed" if needed else _shown(info.default),
        unit=extra.get("unit", ""),
        doc=info.description or "",
    )


def _shown(value: Any) -> str:
    return (
        ""
        if value is None or value in ((), {})
        else str(value).lower()
        if isinstance(value, bool)
        else repr(value)
    )


def _type(annotation: Any) -> str:
    if isinstance(annotation, type) and not getattr(annotation, "__args__", ()):
        return annotation.__name__
    text = str(annotation).replace("typing.", "").replace(" | None", "")
    return text.rsplit(".", 1)[-1].rstrip("]") if "filesink." in text else text
