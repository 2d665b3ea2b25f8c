"""The stage that lists what a batch write replaces. The committer removes it.

Rules:
1. Old files are only listed here. They go when everything that replaces them is visible and durable,
   so a reader may see old and new rows together, but never neither.
2. The list has the files that readers see now. What others publish later stays.
3. A file of an epoch that is decided and not complete counts as published later: the driver that completes
   that epoch still looks for it. The ledgers are read after the files, so none is missed.
4. Hidden files and directories, and everything below another base path inside this one, are not ours.
5. A link that readers see is refused: it is neither followed nor removed, and its rows would stay.
6. With a grace, old files stay that long for readers who hold a snapshot: since when, the publisher says.
   What earlier epochs have left there is no data any more. It is not listed again, so that its time neither
   ends early nor begins anew; the record gets it as it is.
7. A write that takes the place of an earlier one of its txn_id replaces the files of that one, wherever they
   are, and what its mode says, as if that one had never been.
8. Whoever names partitions means those and no others: a row elsewhere would replace rows that nobody named.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from filesink.api import EpochContext, PreCommitStage, Prepared
from filesink.errors import ConcurrentDriverError, ConfigError, DataError, RepeatedTxnError, SecurityError
from filesink.inventory.chains import superseded
from filesink.ledger.ledger import Ledger
from filesink.ledger.sweep import visible
from filesink.naming import is_data, name_of, parent
from filesink.parts.committables import Committable, CommittableCodec, HeldFile, PendingFile, ReplacedFile
from filesink.save_mode import SaveMode
from filesink.storage.api import Entry, Kind, Store

_SHOWN = 3  # buckets in a message


class ReplaceFiles(PreCommitStage[HeldFile, Committable]):
    """Does what the mode of a batch write asks for, as far as that can be done before *decide*.

    Args:
        store: where the files are.
        open_ledger: of any sink below the base path.
        buckets: of an overwrite of partitions: those that are replaced, even if no record is for them. A
            record for another one is refused; if there are none, all that get records are replaced.
        grace_ms: see ``ReplacedFile``.
    """

    def __init__(
        self,
        store: Store,
        open_ledger: Callable[[str], Ledger],
        *,
        buckets: Collection[str] = (),
        grace_ms: int = 0,
    ) -> None:
        self._store = store
        self._open_ledger = open_ledger
        self._buckets = frozenset(buckets)
        self._grace_ms = grace_ms

    def begin(self, epoch: EpochContext) -> None:
        """Refuse to write where data exists, if so asked; see ``PreCommitStage.begin``."""
        if epoch.mode is SaveMode.ERROR_IF_DATA_EXISTS:
            for path, _ in _new(epoch, _data(self._store)):
                raise ConfigError(
                    f"mode 'error_if_data_exists': there is data below the base path, such as '{path}'. "
                    "Nothing was written. Use another path, or mode 'append' or 'overwrite'",
                    code="DATA_EXISTS",
                )

    def prepare(
        self, epoch: EpochContext, prepared: Prepared[HeldFile, Committable]
    ) -> Prepared[HeldFile, Committable]:
        """Name what is to be replaced; see ``PreCommitStage.prepare``."""
        self.begin(epoch)  # data may have come meanwhile
        match epoch.mode:
            case SaveMode.OVERWRITE:
                return self._replacing(epoch, prepared, None)
            case SaveMode.OVERWRITE_PARTITIONS:
                return self._replacing(epoch, prepared, self._whole(prepared.committables))
            case _ if epoch.supersedes:
                return self._replacing(epoch, prepared, ())
            case _:
                return prepared

    def follow(
        self,
        epoch: EpochContext,
        prepared: Prepared[HeldFile, Committable],
        others: Sequence[Sequence[Committable]],
    ) -> Prepared[HeldFile, Committable]:
        """Look again at what is to be replaced, unless another write has replaced some of it since.

        Raises:
            ConcurrentDriverError: ``PARTITION_CONFLICT``; which of two that replace the same comes last is
                nobody's choice, and this one may have read what is gone.
        """
        theirs = {bucket for committables in others for bucket in _touched(committables)}
        ours = theirs if epoch.mode is SaveMode.OVERWRITE else _touched(prepared.committables) | self._buckets
        if both := sorted(ours & theirs):
            raise ConcurrentDriverError(
                f"another write has replaced {_text(both)} since this one began, and this one would replace "
                "the same. Nothing of it became visible. Run it again if it is to come after that; writes of "
                "other partitions may run at the same time",
                code="PARTITION_CONFLICT",
            )
        kept = [one for one in prepared.committables if not isinstance(one, ReplacedFile)]
        return self.prepare(epoch, Prepared(kept, prepared.states))

    def _whole(self, committables: Sequence[Committable]) -> Collection[str]:
        """The buckets that are replaced.

        Raises:
            DataError: ``OTHER_PARTITION``; there are records for buckets that were not named.
        """
        written = _written(committables)
        if self._buckets and (others := sorted(written - self._buckets)):
            raise DataError(
                f"there are rows for {_text(others)}, and partitions= names {_text(sorted(self._buckets))}: "
                "they would replace what nobody named. Nothing became visible. Write only rows of those that "
                "are named, or name these, too",
                code="OTHER_PARTITION",
            )
        return self._buckets or written

    def _replacing(
        self,
        epoch: EpochContext,
        prepared: Prepared[HeldFile, Committable],
        whole: Collection[str] | None,
    ) -> Prepared[HeldFile, Committable]:
        files = self._listed(epoch, whole)
        at_work = unfinished(self._open_ledger, own=epoch.sink_id)
        # By its own name, of which there is one only: a directory has several where case makes no difference.
        replaced = [
            ReplacedFile(path=path, size=entry.size, version=entry.version, grace_ms=self._grace_ms)
            for path, entry in files
            if name_of(path) not in at_work
        ]
        return Prepared([*prepared.committables, *replaced], prepared.states)

    def _listed(self, epoch: EpochContext, whole: Collection[str] | None) -> list[tuple[str, Entry]]:
        """All files of the buckets ``whole``, or all for ``None``; elsewhere those of the earlier write."""
        if whole is None:
            return list(_new(epoch, _data(self._store)))
        return [*_new(epoch, _data(self._store, sorted(whole))), *self._superseded(epoch, whole)]

    def _superseded(self, epoch: EpochContext, whole: Collection[str]) -> list[tuple[str, Entry]]:
        """The files of the earlier write of this txn_id outside of the buckets ``whole``, which go anyway.

        Raises:
            RepeatedTxnError: ``FILES_GONE``; some are not there, and their rows may be elsewhere; or they are
                there for readers alone.
        """
        parts = {
            name_of(file.target): file.bucket
            for file in epoch.supersedes
            if isinstance(file, PendingFile) and is_data(file.bucket) and file.bucket not in whole
        }
        merged = superseded(self._store) if parts else {}
        found = [
            (path, entry)
            for path, entry in _new(epoch, _data(self._store, sorted(set(parts.values()))))
            if name_of(path) in parts and path not in merged
        ]
        _check_there(parts, {name_of(path) for path, _ in found})
        return found


def unfinished(open_ledger: Callable[[str], Ledger], *, own: str) -> set[str]:
    """Names of the files of every epoch that is decided and not complete, but for those of chain ``own``.

    See rule 3: whoever removes one of them would have its driver look for it in vain.
    """
    codec = CommittableCodec()
    found: set[str] = set()
    for name in open_ledger(own).directory.neighbours():
        ledger = open_ledger(name)
        for record in ledger.history.publishing():
            found |= _targets(record.committables.decode(codec))
        # A power cut may take a completion whose driver has died just now: then that driver's successor
        # would look for its files. It must not, once they are removed.
        ledger.directory.sync()
    return found


def _check_there(targets: Collection[str], there: Collection[str]) -> None:
    """Raise unless all files of the write that is to be replaced are there: else its rows are elsewhere."""
    gone = sorted(set(targets) - set(there))
    if gone:
        raise RepeatedTxnError(
            f"{len(gone)} of {len(targets)} files of the earlier write are not there any more, such as "
            f"'{gone[0]}': they were overwritten, or merged by offline compaction, so they cannot be "
            "replaced alone. Nothing became visible. Replace all that is in their partitions, with "
            "mode='overwrite_partitions' and partitions=[…], or keep what is there with "
            "on_repeated_txn='skip'",
            code="FILES_GONE",
        )


def _data(store: Store, directories: Iterable[str] | None = None) -> Iterator[tuple[str, Entry]]:
    """What readers see, see ``visible``; all of it files.

    Raises:
        SecurityError: ``SYMLINK``. A link would keep old rows visible beside what replaces them, and what
            it leads to is not ours to remove.
    """
    for path, entry in visible(store, directories):
        if entry.kind is not Kind.FILE:
            raise SecurityError(
                f"'{path}' below the base path is a symbolic link or another thing that is neither file nor "
                "directory: readers follow it, and a write that replaces files, or wants to be the first, "
                "does not. Nothing became visible. Move it away, or give it a name that begins with '_'",
                code="SYMLINK",
            )
        yield path, entry


def _new(epoch: EpochContext, files: Iterable[tuple[str, Entry]]) -> Iterator[tuple[str, Entry]]:
    """``files`` without those that earlier epochs have replaced, and left there."""
    left = {file.identity() for file in epoch.left if isinstance(file, ReplacedFile)}
    return ((path, entry) for path, entry in files if (path, entry.size, entry.version) not in left)


def _written(committables: Iterable[Committable]) -> set[str]:
    """Buckets of readers that get files."""
    pending = (file for file in committables if isinstance(file, PendingFile))
    return {file.bucket for file in pending if is_data(file.bucket)}


def _touched(committables: Iterable[Committable]) -> set[str]:
    """Buckets in which an epoch adds or removes what readers see."""
    removed = {parent(file.path) for file in committables if isinstance(file, ReplacedFile)}
    return removed | _written(committables)


def _text(buckets: Sequence[str]) -> str:
    shown = ", ".join(f"'{bucket}'" if bucket else "the base path itself" for bucket in buckets[:_SHOWN])
    return shown if len(buckets) <= _SHOWN else f"{shown} and {len(buckets) - _SHOWN} more"


def _targets(committables: Iterable[Committable]) -> set[str]:
    return {name_of(file.target) for file in committables if isinstance(file, PendingFile)}
