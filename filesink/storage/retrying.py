"""A store around a store that retries calls where that may help. For drivers; Spark repeats tasks.

Rules:

* A call is retried only if its contract allows to call it again and nobody else retries it: not ``publish``
  and ``release``, which a committer repeats for many files at once, and not ``sync``, whose second answer
  proves nothing.
* ``put_if_absent`` may find what an earlier try has made after all, and then says ``EXISTS``. A caller that
  must know whose file it is has to look, as after a lost reply.
* After retries that did not help there are none until a call succeeds. So an outage is waited for once, and
  not again by each call that finds out what it has left.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import MappingProxyType
from typing import TypeVar

from filesink.errors import StorageError
from filesink.ports import Clock
from filesink.retry import Backoff
from filesink.storage.api import Store
from filesink.storage.wrapped import WrappedStore

T = TypeVar("T")
log = logging.getLogger("filesink")

#: The calls that are retried, and what they do, for the log. ``prepare`` is none: whoever starts a sink
#: hears at once what is wrong.
_RETRIED = MappingProxyType(
    {
        "removal": "removing",
        "verify": "looking at",
        "is_published": "looking at",
        "discard": "removing",
        "put_if_absent": "creating",
        "read": "reading",
        "delete": "removing",
        "delete_if_unchanged": "removing",
        "list": "listing",
        "find": "looking at",
    }
)


class RetryingStore(WrappedStore):
    """Does what ``store`` does, and retries for a while what may succeed later.

    Args:
        store: does the work.
        clock: waits.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store)
        self.runner = store.runner
        self._clock = clock
        self._in_vain = False

    def _call(self, operation: str, path: str, effect: Callable[[], T]) -> T:
        if operation not in _RETRIED:
            return effect()
        backoff: Backoff | None = None
        while True:
            try:
                result = effect()
            except StorageError as error:
                backoff = backoff or Backoff(self._clock)
                if error.is_permanent or self._in_vain or not backoff.wait():
                    self._in_vain = not error.is_permanent
                    raise
                log.warning("%s '%s' failed and is tried again: %s", _RETRIED[operation], path, error)
            else:
                self._in_vain = False
                return result
