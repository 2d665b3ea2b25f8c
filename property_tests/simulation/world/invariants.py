"""What holds in every history. Checks name them, and docs/reliability.md shows them."""

from __future__ import annotations

from typing import Final

#: By the number that messages begin with.
INVARIANTS: Final = {
    "I1": "Each row of a batch that Spark has noted is visible or held; in the end visible",
    "I2": "No row is visible twice, or both held and visible",
    "I3": "A visible file is whole, as decided, decodable, and in its rows' bucket",
    "I4": "A visible file never changes. It goes only by I15, I17, I20 or I21",
    "I5": "Only our own files are removed, and none that a record needs or an epoch may still decide",
    "I6": (
        "One good epoch and a day after the faults nothing is left over, except of dead batch writes: "
        "undecided ones need `sweep()`, decided ones an append of their `uid` or `recover()`. The "
        "ledger stays small, except for claims"
    ),
    "I7": "After the faults one restart is enough",
    "I8": "Errors are typed and true",
    "I9": "Decide, publish, complete, in this order; a replay of a committed batch changes nothing",
    "I10": "No path leads out of the base",
    "I11": (
        "File names, logs, `repr`, errors and ledger hold no secret and no value of a record, unless "
        "a user's code puts it there"
    ),
    "I12": (
        "A partition is announced after its files are visible and before its epoch is complete; what "
        "cannot be announced is not decided; others' partitions stay; statistics are true in the end"
    ),
    "I13": "Durable bytes are checked before use: magic, version, length, checksum",
    "I14": "A replay with other rows or offsets is refused, and changes nothing",
    "I15": (
        "An overwrite removes old files once all new ones are visible for good; then all except "
        "changed ones, and nothing else"
    ),
    "I16": "A batch with columns that cannot follow is refused before a task runs",
    "I17": (
        "A file merged offline has its inputs' rows, for good, before they go; both are visible only "
        "while one is named as superseded"
    ),
    "I18": (
        "Of two writes that replace files of one partition at a time, the second is refused and "
        "nothing of it is visible"
    ),
    "I19": (
        "Each complete epoch has one version, without gaps, once its files are visible for good; "
        "readers see the newest snapshot"
    ),
    "I20": "Replaced files stay until their reader grace is over and no version has them",
    "I21": (
        "Retention keeps what is within its limits. A rollback removes newer files and brings back "
        "copies. An erasure drops its rows alone, and names files that still have some. A new query that "
        "replaces names all. All touch only complete epochs"
    ),
}
