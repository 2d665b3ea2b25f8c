"""Files that were there before us, and that nobody may touch."""

from __future__ import annotations

from property_tests.simulation.observer.observer import Observer

_NEVER_OLD_NS = 10**19  # a sweep by age takes what a sink without a ledger has left long ago


def plant_foreign_files(observer: Observer) -> tuple[str, ...]:
    """Files of others: one that readers see, one that looks as if another sink were writing it."""
    disk = observer.world.disk
    names = (
        "part-of-somebody-else.txt",
        ".part-0.inprogress.ffffffff.0.00000000-0000-4000-8000-000000000000",
    )
    for name in names:
        handle = disk.create(name, None, _NEVER_OLD_NS)
        disk.write(handle, b"theirs", _NEVER_OLD_NS)
        disk.fsync(handle)
        disk.close(handle)
        observer.foreign[name] = b"theirs"
    disk.fsync_directory("")
    disk.changed.clear()
    observer.look_at_all()
    return names
