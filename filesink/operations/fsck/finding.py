"""What ``fsck`` returns."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from filesink.operations.fsck.kinds import KINDS, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong with a path.

    Attributes:
        code: a stable word for programs; ``KINDS`` has all of them.
        base_path: of the sinks.
        path: the file or directory that it is about, relative to the base path; of an export its name.
        detail: what was seen there, as a sentence; never a value of a record.
    """

    code: str
    base_path: str
    path: str
    detail: str

    @property
    def severity(self) -> str:
        """``"damage"``, ``"warning"``, or ``"note"`` of what passes by itself."""
        return self._kind.severity.value

    @property
    def meaning(self) -> str:
        """What that means, for a newcomer."""
        return self._kind.meaning

    @property
    def mend(self) -> str:
        """What to do about it, with the commands."""
        return self._filled({"PATH": self.base_path, "FILE": self.path or "."})

    @property
    def mend_all(self) -> str:
        """The same for all findings with this code: ``FILE`` stands for the path of each."""
        return self._filled({"PATH": self.base_path})

    def _filled(self, names: Mapping[str, str]) -> str:
        words = "|".join(names)
        return re.sub(rf"\b({words})\b", lambda found: shlex.quote(names[found[0]]), self._kind.mend)

    @property
    def command(self) -> str:
        """The command that mends it without losing anything; ``""`` if somebody has to decide."""
        return self._kind.command

    @property
    def _kind(self) -> Kind:
        return KINDS[self.code]


@dataclass(frozen=True, slots=True, kw_only=True)
class FsckReport:
    """What a check of a path has found.

    Attributes:
        path: the base path.
        version: of the inventory that was compared; ``None`` if that cannot be read, and then no files were
            compared.
        files: live files that were compared with the listing.
        opened: those of them that were opened.
        findings: the worst first.
    """

    path: str
    version: int | None
    files: int
    opened: int
    findings: Sequence[Finding]

    @property
    def is_good(self) -> bool:
        """Whether nothing has to be done. Notes do not count."""
        return all(finding.severity == "note" for finding in self.findings)

    def __repr__(self) -> str:
        version = "" if self.version is None else f" version {self.version},"
        return f"<FsckReport{version} {self.files:,} files, {len(self.findings):,} findings>"
