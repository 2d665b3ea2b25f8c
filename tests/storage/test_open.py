"""What may be given as a base path, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from filesink.errors import ConfigError
from filesink.storage.base_path import check_base_path
from filesink.storage.open import open_store


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/data/out", "/data/out"),
        ("/data/out/", "/data/out"),
        ("/data//out", "/data/out"),
        ("/data/a:b@c", "/data/a:b@c"),
        (Path("/data/out"), "/data/out"),
        ("file:/data/out", "/data/out"),
        ("file:///data/out", "/data/out"),
        ("FILE:///data/out", "/data/out"),
        ("file://localhost/data/out", "/data/out"),
        ("file:///data/a%20b", "/data/a%20b"),
        ("file:///data/a@b", "/data/a@b"),
        ("/data/Zürich", "/data/Zürich"),
        ("hdfs://nn:8020/data//out/", "hdfs://nn:8020/data/out"),
        ("HDFS:///data/out", "hdfs:///data/out"),
        ("hdfs://nn", "hdfs://nn/"),
        ("webhdfs://nn:9870/a b%20@c", "webhdfs://nn:9870/a b%20@c"),
    ],
)
def test_local_paths_have_one_spelling(given: object, path: str) -> None:
    """Plain paths, path objects and file URIs of one directory are the same base path."""
    assert check_base_path(given) == path


def test_relative_paths_are_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tasks run in other directories than the driver."""
    monkeypatch.chdir(tmp_path)
    assert check_base_path("out/x") == str(tmp_path / "out" / "x")
    assert check_base_path("./2024:x") == str(tmp_path / "2024:x")


@pytest.mark.parametrize("given", [None, "", "  "])
def test_a_path_is_required(given: object) -> None:
    """An absent path is not the current directory."""
    with pytest.raises(ConfigError) as raised:
        check_base_path(given)
    assert raised.value.code == "PATH_REQUIRED"


ODD_URIS = [
    "hdfs:/data",
    "hdfs://nn/a/../b",
    "hdfs://nn/./a",
    "hdfs://nn/a:b",
    "s3://bucket/./a",
    "az://data/../a",
]


@pytest.mark.parametrize(
    "given", [b"/data", 7, "/data\0x", "file:data", "file://host/data", "file://", *ODD_URIS]
)
def test_odd_paths_are_refused(given: object) -> None:
    """What is no path, or names another host, is a mistake of configuration."""
    with pytest.raises(ConfigError) as raised:
        check_base_path(given)
    assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    "given",
    [
        "s3://AKIAX:hunter2@bucket/a",
        "s3://AKIAX:hun/ter2@bucket/a",
        "s3://hunter2@bucket/a",
        "foo://user:hunter2@host/a",
        "file://user:hunter2@localhost/a",
    ],
)
def test_credentials_are_refused_and_not_repeated(given: str) -> None:
    """Paths are logged by everything, so they may hold no secret, and the message holds none."""
    with pytest.raises(ConfigError) as raised:
        check_base_path(given)
    assert raised.value.code == "CREDENTIALS"
    assert "hun" not in str(raised.value)
    assert "AKIA" not in str(raised.value)


@pytest.mark.parametrize(
    "given",
    ["foo://bucket/a?secret=hunter2", "smb://bucket/a", "sftp://host/a", "memory://a", "c:\\data"],
)
def test_unknown_schemes_name_the_known_ones(given: str) -> None:
    """The scheme is named, and so is what is supported; the rest is not repeated."""
    with pytest.raises(ConfigError, match="file:///") as raised:
        check_base_path(given)
    assert raised.value.code == "SCHEME"
    assert given.partition(":")[0] in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_options_of_other_stores_are_refused_without_values(tmp_path: Path) -> None:
    """An option that nobody reads is an error; its value may be a secret."""
    with pytest.raises(ConfigError, match=r"'s3\.access\.key'") as raised:
        open_store(str(tmp_path), {"s3.access.key": "hunter2"})
    assert raised.value.code == "UNKNOWN_OPTION"
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["hdfs", "webhdfs", "s3", "az", "gs", "memory"])
def test_options_reach_the_store_of_the_path(scheme: str) -> None:
    """Which knows its own: one that is none of them is refused by name."""
    with pytest.raises(ConfigError, match="no_such_option") as raised:
        open_store(f"{scheme}://host/data", {"no_such_option": "hunter2"})
    assert raised.value.code == "UNKNOWN_OPTION"


@pytest.mark.parametrize(("given", "port"), [("nn", 9870), ("nn:14000", 14000)])
def test_a_namenode_s_web_interface_is_at_its_usual_port(given: str, port: int) -> None:
    """That of Hadoop 3, unless the path names another, as that of HttpFS."""
    store: Any = open_store(f"webhdfs://{given}/data/out", {})
    assert store._files.namenode._client.url == f"http://nn:{port}/webhdfs/v1"


def test_a_local_path_opens_a_working_store(tmp_path: Path) -> None:
    """The store that is opened writes below the path it was given."""
    store = open_store(f"file://{tmp_path}/out", {})
    store.prepare()
    store.put_if_absent("a/x", b"1")
    assert (tmp_path / "out" / "a" / "x").read_bytes() == b"1"


def test_the_reason_for_a_refusal_is_given() -> None:
    """Who asks for a store that cannot keep the contract is told what it lacks."""
    with pytest.raises(ConfigError, match="rename there replaces"):
        check_base_path("sftp://host/data")


def test_memory_is_shared_within_a_process_and_nowhere_else() -> None:
    """Tests and notebooks without Spark may use it; a sink, whose tasks are other processes, may not."""
    open_store("memory://test_open", {}).put_if_absent("a/x", b"1")
    assert open_store("memory://test_open/", {}).read("a/x") == b"1"
    assert open_store("memory://other", {}).read("a/x") is None
    with pytest.raises(ConfigError, match="other processes"):
        check_base_path("memory://test_open")
