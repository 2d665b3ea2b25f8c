"""The command line on a real server of S3: options, what is not there, and who does not answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from filesink.storage.address import StoreAddress
from formats import Encoder
from tests.cli.running import Ran, run
from tests.fakes import World, keep_open, micro_batch, plan_of, records
from tests.servers import S3Server, free_port


@pytest.fixture
def options(moto_server: S3Server, tmp_path: Path) -> Path:
    """A file with what the store must be told, secrets included."""
    file = tmp_path / "options.toml"
    file.write_text("\n".join(f"{name} = {_toml(value)}" for name, value in moto_server.options.items()))
    return file


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_toml(one)}' for name, one in value.items())}}}"
    return json.dumps(value)


@pytest.fixture
def path(moto_server: S3Server) -> str:
    """A path with one file that is visible, and rows that wait."""
    base = f"s3://{moto_server.new_bucket()}/base"
    world = World(
        plan=plan_of(Encoder.json_lines(), policy=keep_open(1 << 20, 10**9, 10**9)),
        open_store=StoreAddress(base_path=base, storage_options=moto_server.options),
    )
    world.clock.now = 1_700_000_000_000
    world.store().prepare()
    world.driver().run(micro_batch(0), world.job(records("a", bucket="day=1")))
    world.driver().finish()
    world.driver().run(micro_batch(1), world.job(records("b", "c", bucket="day=2")))
    return base


def called(options: Path, *arguments: str) -> Ran:
    """With the options of the server."""
    return run(*arguments, "--storage-options", options)


def test_all_commands_work_on_s3(path: str, options: Path) -> None:
    """Those that read, and those that change something."""
    for command in ("status", "log", "ls", "files", "du", "schema", "fsck", "recover", "sweep", "compact"):
        ran = called(options, command, path)
        assert (ran.code, ran.err) == (0, ""), command
    assert called(options, "fsck", path, "--deep").code == 0
    (held,) = called(options, "status", path, "--json").json["held"]
    assert (held["bucket"], held["rows"]) == ("day=2", 2)
    assert called(options, "finish", path, "--yes").code == 0
    assert called(options, "status", path, "--json").json["rows"] == 3
    assert called(options, "fsck", path, "--deep").code == 0


def test_a_held_object_that_is_gone(path: str, options: Path, moto_server: S3Server) -> None:
    """What waits is looked for, too; the way out is a command."""
    bucket, _, prefix = path.removeprefix("s3://").partition("/")
    client = moto_server.client()
    listed = client.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/day=2/")["Contents"]
    client.delete_object(Bucket=bucket, Key=listed[0]["Key"])
    ran = called(options, "fsck", path, "--json")
    assert [finding["code"] for finding in ran.json["findings"]] == ["HELD_LOST"]
    assert called(options, "recover", path, "--lost", "accept", "--yes").code == 0
    assert called(options, "fsck", path).code == 0


@pytest.mark.parametrize("command", ["status", "ls", "fsck", "recover"])
def test_no_bucket(moto_server: S3Server, options: Path, command: str) -> None:
    """Could not look: the store itself says why."""
    del moto_server
    ran = called(options, command, "s3://there-is-no-such-bucket/base")
    assert ran.code == 3
    assert ran.err.rstrip().endswith("[NO_BUCKET]")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["status", "fsck"])
def test_no_network(options: Path, command: str) -> None:
    """Nobody listens: exit code 3, a sentence, and no secret in it; an option counts more than the file."""
    endpoint = f"endpoint_url=http://127.0.0.1:{free_port()}"
    ran = called(options, command, "s3://bucket/base", "--storage-option", endpoint)
    assert ran.code == 3
    assert "not-a-secret" not in ran.err
    assert "Traceback" not in ran.err
    last = ran.err.splitlines()[-1]
    assert last.startswith("filesink: ")
    assert all(line.startswith("warning: ") for line in ran.err.splitlines()[:-1])
