"""What is durable about jobs: files below one path, each created once and never changed.

    <path>/<job id>/job                    the job file's path, its variables, its plan as it may be shown
    <path>/<job id>/events/<number>        what has happened, a chain without gaps
    <path>/<job id>/leases/<number>        who runs the job, and until when
    <path>/<job id>/requests/<number>      what somebody wants of who runs it
    <path>/<job id>/figures-<pipeline>/<number>   how far a stream is; only the newest is kept
    <path>/<job id>/log/<number>           what supervisors have warned of; the newest pieces are kept
    <path>/<job id>/savepoints/<number>    see ``savepoints``
    <path>/<job id>/returns/<number>       to which of them it is being taken back; only the newest is kept
    <path>/<job id>/run/                   checkpoints and ledgers of the job's sinks

Rules:
1. A number is taken by creating its file if it is absent: of two who go on with one chain, one is told.
2. No secret is written: a job file is named, not copied, and its secrets are references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from filesink.errors import CommitStateUnknown, JobError, StateCorruptError
from filesink.framing import frame, from_json, to_json, unframe
from filesink.jobs.text.place import nearest
from filesink.storage.api import Kind, Store
from filesink.storage.outcomes import PutResult

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DIGITS = 10
_VERSION = 1


def check_id(job: str) -> str:
    """``job`` if it can be an id.

    Raises:
        JobError: ``JOB_ID``.
    """
    if not _ID.fullmatch(job):
        raise JobError("a job id has 1 to 64 letters, digits, '-' and '_'", code="JOB_ID")
    return job


class JobStore:
    """The files of all jobs below a path. Several processes may use one path at the same time."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self.path = path

    def ids(self) -> list[str]:
        """Of all jobs, sorted."""
        found = self._store.list("")
        return sorted(one.name for one in found if one.kind is Kind.DIRECTORY and _ID.fullmatch(one.name))

    def create(self, job: str, about: Mapping[str, Any]) -> None:
        """Note a new job.

        Raises:
            JobError: ``JOB_ID``; there is one of this id.
        """
        path = f"{check_id(job)}/job"
        self._store.prepare()
        if not self._put(path, about):
            raise JobError(
                f"there is a job '{job}' already, and filesink job {job} says how it went: go on with "
                f"filesink restore {job} or retry {job}, or take another id for a run that writes once more",
                code="JOB_ID",
            )

    def about(self, job: str) -> dict[str, Any]:
        """What was noted of a job.

        Raises:
            JobError: ``JOB_ID``; there is none, and the nearest is named.
        """
        found = self._get(f"{check_id(job)}/job")
        if found is None:
            raise JobError(
                f"there is no job '{job}' at '{self.path}'{nearest(job, self.ids())}", code="JOB_ID"
            )
        return found

    def chain(self, job: str, name: str) -> list[dict[str, Any]]:
        """Everything in a chain, in its order."""
        directory = f"{check_id(job)}/{name}"
        numbers = sorted(int(one.name) for one in self._store.list(directory) if one.name.isdigit())
        found = [self._get(f"{directory}/{number:0{_DIGITS}}") for number in numbers]
        return [one for one in found if one is not None]

    def last(self, job: str, name: str) -> tuple[int, dict[str, Any] | None]:
        """The highest number of a chain, and what it has; ``-1`` and ``None`` if there is none."""
        directory = f"{check_id(job)}/{name}"
        numbers = [int(one.name) for one in self._store.list(directory) if one.name.isdigit()]
        if not numbers:
            return -1, None
        return max(numbers), self._get(f"{directory}/{max(numbers):0{_DIGITS}}")

    def append(self, job: str, name: str, number: int, value: Mapping[str, Any]) -> bool:
        """Take ``number`` of a chain; whether nobody else had it."""
        return self._put(f"{check_id(job)}/{name}/{number:0{_DIGITS}}", value)

    def forget(self, job: str, name: str, below: int) -> None:
        """Remove what a chain has before a number; for leases, figures and logs."""
        directory = f"{check_id(job)}/{name}"
        for one in self._store.list(directory):
            if one.name.isdigit() and int(one.name) < below:
                self._store.delete(f"{directory}/{one.name}")

    def names(self, job: str, directory: str) -> list[str]:
        """What lies in a directory of a job; nothing if there is none."""
        return [one.name for one in self._store.list(f"{check_id(job)}/{directory}")]

    def read(self, job: str, path: str) -> bytes | None:
        """A file below the directory of a job."""
        return self._store.read(f"{check_id(job)}/{path}")

    def copy(self, job: str, source: str, target: str, *, instead: Mapping[str, bytes] | None = None) -> None:
        """Copy the visible files of a directory of a job that nobody writes to; may be done again.

        Args:
            job: its id.
            source: the directory.
            target: another one.
            instead: what files of these names, in the directory itself, have in the copy.
        """
        changed = instead or {}
        for entry in self._store.list(f"{check_id(job)}/{source}"):
            if entry.name.startswith("."):  # checksums, and what was never finished
                continue
            if entry.kind is Kind.DIRECTORY:
                self.copy(job, f"{source}/{entry.name}", f"{target}/{entry.name}")
                continue
            data = changed.get(entry.name)
            if data is None:
                data = self._store.read(f"{job}/{source}/{entry.name}")
            if data is not None:
                self._store.put_if_absent(f"{job}/{target}/{entry.name}", data)

    def directory(self, job: str) -> str:
        """Where checkpoints and ledgers of a job are, as a path for sinks."""
        return f"{self.path.rstrip('/')}/{check_id(job)}/run"

    def _put(self, path: str, value: Mapping[str, Any]) -> bool:
        data = frame("job", _VERSION, to_json(dict(value)))
        try:
            if self._store.put_if_absent(path, data) is PutResult.CREATED:
                return True
        except CommitStateUnknown:
            pass
        # It may be our own, of an earlier try whose reply was lost; values hold who wrote them.
        return self._store.read(path) == data

    def _get(self, path: str) -> dict[str, Any] | None:
        data = self._store.read(path)
        if data is None:
            return None
        where = f"{self.path}/{path}"
        _, payload = unframe("job", _VERSION, data, where=where)
        found = from_json(payload, where=where)
        if not isinstance(found, dict):
            raise StateCorruptError(f"{where} is no record of a job", code="JSON")
        return found
