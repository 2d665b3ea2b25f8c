"""Everything that can be wrong: what it means, and the command that mends it. One table for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, Literal


class Severity(Enum):
    """How bad a finding is."""

    DAMAGE = "damage"  # rows are lost, doubled or unreadable, or a sink cannot go on
    WARNING = "warning"  # nothing is lost; somebody has to do something
    NOTE = "note"  # passes by itself


_Command = Literal["", "recover", "adopt", "sweep"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One thing that can be wrong.

    Attributes:
        severity: see there.
        meaning: a sentence for who has never seen it.
        mend: what to do; ``PATH`` stands for the base path, ``FILE`` for the file.
        command: the command that does it without losing anything; ``""`` if somebody has to decide.
    """

    severity: Severity
    meaning: str
    mend: str
    command: _Command = ""


def _damage(meaning: str, mend: str, command: _Command = "") -> Kind:
    return Kind(severity=Severity.DAMAGE, meaning=meaning, mend=mend, command=command)


def _warning(meaning: str, mend: str, command: _Command = "") -> Kind:
    return Kind(severity=Severity.WARNING, meaning=meaning, mend=mend, command=command)


def _note(meaning: str, mend: str, command: _Command = "") -> Kind:
    return Kind(severity=Severity.NOTE, meaning=meaning, mend=mend, command=command)


_RESTORE: Final = "restore FILE from a backup, then filesink recover PATH"
_ADOPT: Final = ("filesink adopt PATH", "adopt")
_BY_HAND: Final = "move FILE to a place outside of PATH"

#: By code, in the order in which they are looked for.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        # Ledgers.
        "RECORD_DAMAGED": _damage(
            "The record of an epoch cannot be read. Its sink stops until it can.", _RESTORE
        ),
        "RECORD_MISSING": _damage(
            "An epoch has no record, and a later one has: the directory was emptied, or replaced by an older "
            "copy. Its sink stops.",
            _RESTORE,
        ),
        "RECORD_FOREIGN": _damage(
            "A record is that of another epoch or sink: it was copied here.",
            "move the copied directory out of _filesink, or restore FILE from a backup",
        ),
        "RECORD_REFUSED": _damage(
            "A record names files that its sink cannot have written. Nobody follows it.",
            "restore FILE from a backup, and find out who can write there",
        ),
        "HEAD_MISSING": _damage(
            "Old epochs were folded away, and the newest record is gone.",
            "restore the directory FILE from a backup, then filesink recover PATH",
        ),
        "MARK_STRAY": _damage(
            "A mark says that all records up to it are folded away, and there is none after it: they are "
            "void by a mark that no driver makes.",
            "remove FILE, if nobody of yours has made it; then filesink recover PATH",
        ),
        "TAIL_LOST": _damage(
            "Files or the inventory know a later epoch than the ledger does: its newest records are lost.",
            "restore the directory FILE from a backup, then filesink recover PATH",
        ),
        "LEDGER_LOST": _damage(
            "The inventory knows epochs of a sink that has no ledger any more. A restart would write its "
            "input again.",
            "restore the directory FILE from a backup",
        ),
        "COMPLETION_STRAY": _damage(
            "An epoch is said to be done, and has no record. Its sink stops.",
            "restore its record from a backup; if there never was such an epoch, remove FILE",
        ),
        "COMPLETION_FOREIGN": _damage(
            "What says that an epoch is done belongs to another record.",
            "restore FILE from a backup; if rows of that epoch are missing, remove it, then filesink recover "
            "PATH",
        ),
        "COMPLETION_DAMAGED": _damage("What says that an epoch is done cannot be read.", _RESTORE),
        "COMPLETION_MISSING": _damage(
            "A later epoch was decided although this one is not said to be done: its completion is lost.",
            "restore FILE from a backup",
        ),
        "BATCH_DOUBLED": _damage(
            "The same micro-batch was decided twice in one ledger: its rows are there twice.",
            "find out who can write to the ledger; remove the files of the later epoch, see filesink show",
        ),
        "CLAIM_DAMAGED": _damage(
            "It cannot be read which write a txn_id stands for. Repeating that write is refused.", _RESTORE
        ),
        "CLAIM_MISSING": _damage(
            "A txn_id has lost one of its claims. Repeating that write is refused, since its rows could be "
            "written twice.",
            "restore the directory FILE from a backup",
        ),
        "LAYOUT_DAMAGED": _damage(
            "It cannot be read how the files of the path are laid out. Writers stop.", _RESTORE
        ),
        "TAG_SHARED": _warning(
            "Two sinks have the same tag in the names of their files. Nothing of either is swept.",
            "write under another uid",
        ),
        "EPOCH_UNFINISHED": _warning(
            "An epoch was decided ten minutes ago, and is not complete: its driver has died, or hangs.",
            "start its query again, or filesink recover PATH",
            "recover",
        ),
        "EPOCH_AT_WORK": _note(
            "An epoch is decided and not complete yet: its driver is at work, or has died. After ten minutes "
            "it is EPOCH_UNFINISHED.",
            "wait; if its driver is dead, restart it, or filesink recover PATH",
        ),
        # Inventory.
        "INVENTORY_MISSING": _warning(
            "The path has no inventory: an older release has written it, or it was removed.", *_ADOPT
        ),
        "INVENTORY_ADOPTING": _warning("An adoption runs, or was interrupted. Nobody can read.", *_ADOPT),
        "MARK_DAMAGED": _damage("A mark of the inventory cannot be read.", *_ADOPT),
        "MARK_PAST": _note(
            "A mark of the inventory that is not the newest cannot be read. Nobody needs it.",
            "wait; it goes with a later one",
        ),
        "MARK_MISSING": _damage("A mark of the inventory is gone.", *_ADOPT),
        "MARK_FOREIGN": _damage(
            "A mark does not follow the one before it: it is that of another inventory.", *_ADOPT
        ),
        "SEGMENT_DAMAGED": _damage("A segment of the inventory has another size or checksum.", *_ADOPT),
        "SEGMENT_MISSING": _damage("A segment of the inventory is gone.", *_ADOPT),
        "ENTRY_DAMAGED": _damage("The entry of a version cannot be read.", *_ADOPT),
        "ENTRY_MISSING": _damage("A version has no entry, and a later one has.", *_ADOPT),
        "ENTRY_FOREIGN": _damage(
            "The entry of a version is that of another one: it was copied here.", *_ADOPT
        ),
        "SCHEMA_MISSING": _damage("Columns that the inventory names are gone.", *_ADOPT),
        "SCHEMA_DAMAGED": _damage("Columns that the inventory names cannot be read.", *_ADOPT),
        "VERSION_MISSING": _damage(
            "An epoch is complete and has no version: readers by versions do not see its rows.", *_ADOPT
        ),
        "VERSION_DOUBLED": _damage("An epoch has two versions: who follows the path sees it twice.", *_ADOPT),
        "LEDGER_REPLACED": _damage(
            "The ledger has another epoch in a place than the inventory has seen there: it was replaced by "
            "an older copy and went on.",
            "compare both with a backup; then filesink adopt PATH",
        ),
        "INVENTORY_DISAGREES": _damage(
            "Rows or size of a file are other ones in the inventory than in the record of its epoch.", *_ADOPT
        ),
        # Files.
        "FILE_LOST": _damage(
            "A file that readers by versions expect is not there.",
            "restore FILE from a backup; if its rows are not needed, filesink adopt PATH",
        ),
        "FILE_MISPLACED": _damage(
            "A file is in another directory than it was written to: its rows have a wrong partition.",
            "move FILE back to where the finding says; then, if it is not live, filesink adopt PATH",
        ),
        "FILE_RESIZED": _damage(
            "A file has another size than when it became visible: it was cut off, or written to.",
            "restore FILE from a backup",
        ),
        "FILE_TORN": _damage("A file cannot be read to its end.", "restore FILE from a backup"),
        "FILE_UNREAD": _warning(
            "A file could not be looked at, and everything else was.",
            "give the user of fsck the right to read FILE, then filesink fsck PATH",
        ),
        "FILE_ROWS": _damage(
            "A file has another number of rows than its epoch has written.", "restore FILE from a backup"
        ),
        "FILE_RETURNED": _damage(
            "A file that was replaced or dropped is there, again or still: it was brought back, or was "
            "changed before it had to go. Who lists the directory sees its rows: twice if other files have "
            "them, and else although they were dropped.",
            _BY_HAND,
        ),
        "FILE_DOUBLED": _damage(
            "A file is a copy of another one, or has its name: who lists the directory sees rows twice.",
            _BY_HAND,
        ),
        "FILE_UNKNOWN": _damage(
            "A part file belongs to no epoch that is complete: who lists the directory sees rows that "
            "readers by versions do not.",
            f"{_BY_HAND}; or, to keep its rows, filesink adopt PATH",
        ),
        "FILE_FOREIGN": _warning(
            "A file is none of ours, and who lists the directory reads it.", f"{_BY_HAND}, if it is no data"
        ),
        "FILE_LINK": _warning(
            "A link, or what else is no file, stands among the data. Readers follow it, and sinks do not.",
            _BY_HAND,
        ),
        "FILE_LEFT": _warning(
            "A file that was replaced or dropped is still there, and no reader needs it: its removal failed, "
            "or nothing was written since its reader grace was over. Who lists the directory sees its rows.",
            "let its user remove files there; the next write, or filesink recover PATH, removes it",
            "recover",
        ),
        "BASE_NESTED": _damage(
            "A directory with files of this path has become a base path of its own: sinks of this one do not "
            "look into it any more.",
            "move the directory _filesink out of FILE",
        ),
        # A metastore, if one is asked.
        "PARTITION_MISSING": _warning(
            "A directory with files is no partition of the table: queries by the metastore miss its rows.",
            "filesink publish PATH --metastore URI --table TABLE --yes",
        ),
        "PARTITION_ELSEWHERE": _damage(
            "The metastore has a partition, or the table, in another place than its files are.",
            "set its location in the metastore, or drop it there, then filesink publish PATH",
        ),
        # Exports, if they are asked for.
        "EXPORT_BEHIND": _warning(
            "What an export keeps is older than a version that was visible ten minutes ago: its readers miss "
            "rows, and fail on files that are gone.",
            "filesink export PATH --to FILE --yes; or, if nobody exports any more, the same with --drop",
        ),
        "EXPORT_DISAGREES": _damage(
            "What an export keeps names other files than its version has: somebody has changed it, or the "
            "path was brought back from a backup without it.",
            "filesink export PATH --to FILE --drop --yes, then without --drop",
        ),
        "EXPORT_FOREIGN": _damage(
            "What an export keeps was made or changed by somebody else. Nothing is exported there any more.",
            "stop who writes there, move it out of PATH, then filesink export PATH --to FILE --yes",
        ),
        # Hidden files.
        "HELD_LOST": _damage(
            "A hidden file whose rows wait to become visible is gone, or was changed. The next epoch fails.",
            "restore FILE from a backup; or give its rows up with filesink recover PATH --lost accept",
        ),
        "PENDING_LOST": _damage(
            "A file of an epoch that is decided and not complete is gone. The epoch cannot be completed.",
            "restore FILE from a backup; or filesink recover PATH --lost rewrite, or --lost accept",
        ),
        "GARBAGE": _warning(
            "A hidden file that nothing can refer to any more takes up space.", "filesink sweep PATH", "sweep"
        ),
        "HIDDEN_OLD": _note(
            "A hidden file of a sink without a ledger, or of an epoch that was never decided, is older than "
            "seven days.",
            "filesink sweep PATH",
            "sweep",
        ),
        # All.
        "NEWER_RELEASE": _warning(
            "A newer release has written this; it cannot be judged.", "upgrade filesink, and ask again"
        ),
    }
)
