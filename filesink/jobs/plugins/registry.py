"""Plugins by name: our own, and those that other packages name as entry points ``filesink.plugins``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from filesink.errors import JobError
from filesink.jobs.plugins.api import Plugin, Sink, Source, Transform
from filesink.jobs.text.place import Place, failure, nearest

GROUP = "filesink.plugins"
_KINDS: Mapping[str, type[Plugin]] = {"source": Source, "transform": Transform, "sink": Sink}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Classes of plugins.

    Args:
        plugins: the classes; of two with one name and kind, the later one counts.
        refused: names of SeaTunnel's plugins that have no counterpart, by kind, each with the reason.
    """

    plugins: tuple[type[Plugin], ...]
    refused: Mapping[tuple[str, str], str]

    def find(self, section: str, name: str, place: Place) -> type[Plugin]:
        """The plugin ``name`` of a section.

        Raises:
            JobError: ``JOB_PLUGIN``; there is none, and the nearest is named. ``JOB_REFUSED``.
        """
        known = {
            word.lower(): one
            for one in self.plugins
            if issubclass(one, _KINDS[section])
            for word in (one.name, *one.words)
        }
        if name.lower() in known:
            return known[name.lower()]
        reason = self.refused.get((section, name.lower()))
        if reason is not None:
            raise failure(place, f"{section} {name} has no counterpart: {reason}", code="JOB_REFUSED")
        names = [one.name for one in self.plugins if issubclass(one, _KINDS[section])]
        raise failure(place, f"there is no {section} '{name}'{nearest(name, names)}", code="JOB_PLUGIN")


def installed() -> list[type[Plugin]]:
    """Plugins of other packages.

    Raises:
        JobError: ``JOB_PLUGIN``; one cannot be imported, or is no plugin.
    """
    return list(_loaded(entry_points(group=GROUP)))


def _loaded(points: Iterable[object]) -> Iterable[type[Plugin]]:
    for point in points:
        name = getattr(point, "name", "")
        try:
            found = point.load()  # type: ignore[attr-defined] # an EntryPoint
        except (ImportError, AttributeError) as error:
            raise JobError(
                f"the plugin '{name}' of another package cannot be imported ({type(error).__name__}); mend "
                "or uninstall that package",
                code="JOB_PLUGIN",
            ) from error
        if not (isinstance(found, type) and issubclass(found, (Source, Transform, Sink))):
            raise JobError(
                f"the plugin '{name}' of another package is no Source, Transform or Sink of "
                "filesink.jobs.plugins.api",
                code="JOB_PLUGIN",
            )
        yield found
