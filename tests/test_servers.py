"""Servers of the tests: whoever gets a port talks to the server that was started for it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from tests import servers


def web_server(port):
    """A server of files; it ends if somebody else has its port."""
    return [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]


def test_a_port_that_somebody_else_has_taken_is_given_up(tmp_path, monkeypatch):
    """Although somebody answers there."""
    (tmp_path / "mine").write_text("yes")
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken, free = other.getsockname()[1], servers.free_port()
        ports = iter([taken, free])
        monkeypatch.setattr(servers, "free_port", lambda: next(ports))
        with servers.running(web_server, tmp_path / "log", cwd=tmp_path) as port:
            assert port == free
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/mine") as answer:
                assert answer.read() == b"yes"


def test_a_server_that_does_not_start_is_an_error(tmp_path):
    """With the last that it said."""
    command = [sys.executable, "-c", "raise SystemExit('no disk')"]
    with (
        pytest.raises(RuntimeError, match="no disk"),
        servers.running(lambda _: command, tmp_path / "log"),
    ):
        pytest.fail("nothing listens")


def test_a_server_that_does_not_end_is_killed(tmp_path, monkeypatch):
    """Else the tests would wait for it, or leave it behind."""
    started = []
    plain = subprocess.Popen

    def remembering(*arguments, **options):
        started.append(plain(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", remembering)
    monkeypatch.setattr(servers, "_ENDS_WITHIN", 0.2)
    program = (
        "import signal, socket, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "listening = socket.create_server(('127.0.0.1', int(sys.argv[1]))); signal.pause()"
    )
    with servers.running(lambda port: [sys.executable, "-c", program, str(port)], tmp_path / "log"):
        assert started[0].poll() is None
    assert [server.returncode for server in started] == [-signal.SIGKILL]
