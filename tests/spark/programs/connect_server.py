"""A server of Spark Connect on a free port of loopback, until its standard input is closed.

    python -m tests.spark.programs.connect_server <directory of its own>

Says ``port <number>`` when it listens. Finds ``format("filesink")`` as a server with the wheel does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spark import sessions, wheel_site


def main(directory: Path) -> None:
    """Serve until nobody listens any more."""
    wheel_site.offer(directory)
    session = sessions.start(
        "local[2,2]",
        spark__plugins="org.apache.spark.sql.connect.SparkConnectPlugin",
        spark__connect__grpc__binding__address="127.0.0.1",
        spark__connect__grpc__binding__port="0",
        spark__sql__warehouse__dir=str(directory / "warehouse"),
    )
    jvm = session.sparkContext._jvm
    assert jvm is not None
    service = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    sessions.say(f"port {getattr(service, 'MODULE$').localPort()}")
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
