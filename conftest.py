"""Which tests run, in which order, and what holds for all of them."""

from __future__ import annotations

import atexit
import gc
import os
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

# The first example of a test pays for imports, and machines differ: no test fails by the clock.
settings.register_profile("change", deadline=None, max_examples=25)
#: Fixtures that start one.
_SERVERS = frozenset(
    {
        "azure_connection",
        "gcs_server",
        "hdfs_cluster",
        "hive",
        "kafka",
        "moto_server",
        "postgres",
        "rclone_server",
    }
)
#: Files that start the same server, which takes half a minute: they run in one process, one after the other.
_TOGETHER = {
    "tests/metastore/": "a Hive metastore",
    "tests/sinks/kafka/": "a broker of Kafka",
    "tests/storage/hdfs/test_hdfs.py": "an HDFS cluster",
    "tests/spark/stores/test_other_stores.py": "an HDFS cluster",
}

settings.register_profile("nightly", deadline=None, max_examples=1_000)


def pytest_configure(config: pytest.Config) -> None:
    """A night tries more examples; Java machines of tests live for seconds.

    Compiling their code well would take longer than running it.
    """
    gc.disable()  # until all is collected: nearly everything that is made until then stays
    settings.load_profile("nightly" if _is_night(config) else "change")
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto")


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: from now on nobody looks whether they are garbage."""
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # some libraries complain of what is left at the end


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked ``nightly`` run only if ``-m`` names them; those that start a server are slow.

    Files with slow tests come first, so that several processes end at about the same time.
    """
    if not _is_night(config):
        left_out = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    for item in items:
        if not _SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    """A process takes a file, as with ``--dist loadfile``, or all files that start the same server."""
    from xdist.scheduler import LoadFileScheduling

    class TogetherScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return next((server for start, server in _TOGETHER.items() if file.startswith(start)), file)

    return TogetherScheduling(config, log)


def _is_night(config: pytest.Config) -> bool:
    """Whether ``-m`` asks for what is marked so."""
    return re.search(r"(?<!not )\bnightly\b", config.getoption("markexpr")) is not None
