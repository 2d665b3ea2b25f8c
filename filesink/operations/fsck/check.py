"""``filesink.fsck``: looks at all of a path, and once more at what seems to be wrong.

Rules:
1. Nothing is written, removed or made durable anew.
2. A path may be written to meanwhile. So what one look has found counts only if a second one finds it, too.
3. What is damaged is told of, and the rest is looked at all the same. Only files are not compared if there is
   no inventory to compare them with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from filesink.arguments import one_of
from filesink.errors import ConfigError, StateError
from filesink.ledger.claims import Claims
from filesink.ledger.directory import LedgerDirectory, ledger_ids
from filesink.ledger.record import BatchWrite, EpochRecord
from filesink.metastore.api import Metastore
from filesink.operations.fsck.chains import look_at_chains
from filesink.operations.fsck.contents import check_contents, is_opened
from filesink.operations.fsck.exported import Exported, Exports
from filesink.operations.fsck.files import Known, LiveFile, compare_files, known_of
from filesink.operations.fsck.finding import Finding, FsckReport
from filesink.operations.fsck.hidden import needed_and_gone, not_needed
from filesink.operations.fsck.inventory import look_at_inventory
from filesink.operations.fsck.kinds import KINDS, Severity
from filesink.operations.fsck.listing import look_at_files
from filesink.operations.fsck.partitions import Asked, compare_partitions
from filesink.operations.fsck.seen import Draft, Look
from filesink.operations.fsck.versions import compare_versions, without_version
from filesink.operations.progress import Progress, progress_of
from filesink.parts.recorded_paths import check_record
from filesink.ports import Clock
from filesink.sink_directory.directory import SinkDirectory
from filesink.sink_directory.opening import site_of
from filesink.storage.api import Kind, Store

Depth = Literal["quick", "ends", "deep"]
_ORDER = list(KINDS)
_WORST = list(Severity)


def fsck(  # noqa: PLR0913 - a metastore and a table are one thing
    path: str | PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    depth: Depth = "ends",
    progress: Progress | None = None,
    metastore: Metastore | None = None,
    table: str | None = None,
    exporters: Sequence[Exported] = (),
) -> FsckReport:
    """See ``filesink.fsck``, which is this with the settings of an active session."""
    one_of(depth, ("quick", "ends", "deep"), name="depth")
    told = progress_of(progress)
    if (metastore is None) != (table is None):
        raise ConfigError(
            "a metastore and the name of a table go together: give both, or neither", code="CONFLICT"
        )
    given: Any = exporters
    if not isinstance(given, list | tuple) or not all(callable(getattr(one, "named", None)) for one in given):
        raise ConfigError("exporters must be a list of exporters, such as DeltaExport()", code="BAD_VALUE")
    site = site_of(path, storage_options)
    asked = None if metastore is None or table is None else Asked(metastore=metastore, table=table)
    exports = Exports(exporters=exporters, directory=SinkDirectory(_site=site), clock=site.clock)
    check = Check(store=site.store, clock=site.clock, progress=told, asked=asked, exports=exports)
    return check.run(site.base_path, depth)


@dataclass(frozen=True, kw_only=True)
class _Compared:
    """What one look has found."""

    look: Look
    known: Known | None
    drafts: Sequence[Draft]


@dataclass(frozen=True, kw_only=True)
class Check:
    """Checks one base path.

    Attributes:
        store: of that path.
        clock: tells what is old, and waits before something is looked at again.
        progress: told how far it is.
        asked: a metastore that is compared, too.
        exports: as well.
    """

    store: Store
    clock: Clock
    progress: Progress
    asked: Asked | None = None
    exports: Exports | None = None

    def run(self, base_path: str, depth: Depth) -> FsckReport:
        """See ``fsck``."""
        found = self._compare(base_path)
        if found.drafts:
            found = _in_both(found, self._compare(base_path))
        suspects = {draft.path for draft in found.drafts}
        files = [] if found.known is None else list(_there(found.known, found.look))
        opened = [file for file in files if file.path not in suspects and depth != "quick"]
        opened = [file for file in opened if is_opened(file.path, deep=depth == "deep")]
        drafts = [*found.drafts, *self._contents(opened, deep=depth == "deep")]
        findings = [
            Finding(code=draft.code, base_path=base_path, path=draft.path, detail=draft.detail)
            for draft in sorted(set(drafts), key=_place)
        ]
        inventory = found.look.inventory
        return FsckReport(
            path=base_path,
            version=None if inventory is None else inventory.version,
            files=0 if found.known is None else len(found.known.live),
            opened=len(opened),
            findings=tuple(findings),
        )

    def _compare(self, base_path: str) -> _Compared:
        look, drafts = self._look()
        drafts += needed_and_gone(look.chains, self.store)
        drafts += not_needed(look, self.store, self.clock.now_ms())
        known = None
        if look.inventory is not None:
            known = known_of(look, look.inventory, self.store, now_ms=self.clock.now_ms())
            drafts += compare_versions(look, look.inventory)
            explained = known.moving | known.left | known.gone
            unknown = list(without_version(look, look.inventory, explained, self._lost_claim))
            drafts += [draft for draft, _ in unknown]
            told = frozenset[str]().union(*(paths for _, paths in unknown))
            drafts += compare_files(known, look.files, self.store, told=told)
            if self.asked is not None:
                drafts += compare_partitions(self.asked, known, look.chains, base_path)
            if self.exports is not None:
                drafts += self.exports.compare()
        return _Compared(look=look, known=known, drafts=drafts)

    def _look(self) -> tuple[Look, list[Draft]]:
        self.progress("ledgers", 0, None)
        chains, drafts = look_at_chains(self.store, self.clock.now_ms())
        self.progress("ledgers", len(chains), len(chains))
        inventory, more = look_at_inventory(self.store, self.clock)
        files = look_at_files(self.store, lambda done: self.progress("listed files", done, None))
        decided = {
            sink_id: LedgerDirectory(self.store, sink_id).listing().last_slot()
            for sink_id in ledger_ids(self.store)
        }
        return Look(chains=chains, inventory=inventory, files=files, decided=decided), [*drafts, *more]

    def _contents(self, files: Sequence[LiveFile], *, deep: bool) -> Iterator[Draft]:
        found = check_contents(
            files, self.store, deep=deep, told=lambda done, total: self.progress("opened files", done, total)
        )
        for draft in found:
            # It may have been replaced while it was read.
            if self.store.find(draft.path) is not None:
                yield draft

    def _lost_claim(self, record: EpochRecord) -> bool:
        match record.cause:
            case BatchWrite(remembered_in=name) if name:
                try:
                    standing = Claims(self.store, name, check=check_record).standing()
                except StateError:  # told of the claim itself
                    return True
                return standing is None or standing.nonce != record.nonce
            case _:
                return False


def _in_both(one: _Compared, other: _Compared) -> _Compared:
    """The later look, with what the earlier one has found, too."""
    known = {(draft.code, draft.path) for draft in one.drafts}
    drafts = [draft for draft in other.drafts if (draft.code, draft.path) in known]
    return _Compared(look=other.look, known=other.known, drafts=drafts)


def _there(known: Known, look: Look) -> Iterator[LiveFile]:
    visible = look.files.visible
    return (file for path, file in known.live.items() if path in visible and visible[path].kind is Kind.FILE)


def _place(draft: Draft) -> tuple[int, int, str]:
    return _WORST.index(KINDS[draft.code].severity), _ORDER.index(draft.code), draft.path
