"""The Compose file of the examples is well formed and whole, and its program runs without it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import duckdb
import jsonschema
import pytest
import yaml

from filesink.metastore.api import TableName
from filesink.metastore.memory import MemoryMetastore
from tests.servers import S3Server
from tests.spark.conftest import spark  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "examples" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((HOME / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EACH = pytest.mark.parametrize("service", SERVICES.values(), ids=list(SERVICES))
#: What ``main`` does, with a metastore in memory.
_IN_A_PROCESS = """
import sys
from pyspark.sql import SparkSession
from filesink.metastore.memory import MemoryMetastore
sys.path.append(sys.argv[1])
import write_trips
write_trips.make_bucket("trips-lake")
write_trips.make_bucket("trips-lake")
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
print(write_trips.write(write_trips.trips(spark), "s3://trips-lake/trips", MemoryMetastore()))
"""
_SECRET = re.compile(r"\$\{(?:ENV:)?AWS_[A-Z_]+(?::\?[^}]*)?\}")


@pytest.fixture
def program() -> ModuleType:
    """The program that a driver runs, as a module."""
    spec = importlib.util.spec_from_file_location("write_trips", HOME / "write_trips.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mounts() -> list[tuple[Path, str]]:
    """What is mounted, and how."""
    volumes = [one.split(":") for service in SERVICES.values() for one in service.get("volumes", [])]
    return [(HOME / source, mode) for source, _, mode in volumes]


def test_it_obeys_the_specification() -> None:
    """The schema that the Compose Specification publishes finds nothing, and would find a wrong key."""
    schema = json.loads((ROOT / "tests" / "schemas" / "compose-spec.json").read_text())
    validator = jsonschema.Draft7Validator(schema)
    assert [error.message for error in validator.iter_errors(COMPOSE)] == []
    wrong = {**COMPOSE, "services": {"trino": {"imagine": "trino"}}}
    assert not validator.is_valid(wrong)


@EACH
def test_a_service_is_one_that_can_be_had_and_watched(service: dict[str, Any]) -> None:
    """An image of a fixed version, or ours, which one service builds; a health check; known dependencies."""
    ours = {one["image"] for one in SERVICES.values() if "build" in one}
    assert service["image"] in ours or re.search(r":[^:]*\dZ?$", service["image"])
    assert service["healthcheck"]["test"][0] == "CMD"
    needed = service.get("depends_on", {})
    assert all(SERVICES[name]["healthcheck"] for name in needed)
    assert all(one == {"condition": "service_healthy"} for one in needed.values())


@EACH
def test_nobody_else_on_the_network_reaches_it(service: dict[str, Any]) -> None:
    """Ports are bound to the loopback interface."""
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_every_file_that_it_names_is_there() -> None:
    """What is mounted is a file, read-only, and what is built has its Dockerfile."""
    assert len(mounts()) == 3
    assert all(source.is_file() and mode == "ro" for source, mode in mounts())
    build = SERVICES["master"]["build"]
    context = (HOME / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).is_file()


def test_secrets_come_from_the_environment() -> None:
    """What is called a key, a secret, a user or a password is a variable, and .env.example has them all."""
    example = dict(
        line.split("=") for line in (HOME / ".env.example").read_text().splitlines() if "=" in line
    )
    environments = [service.get("environment", {}) for service in SERVICES.values()]
    properties = [
        line.split("=", 1) for line in (HOME / "trino" / "lake.properties").read_text().splitlines()
    ]
    values = [*(pair for one in environments for pair in one.items()), *properties]
    secret = [
        str(value) for name, value in values if re.search(r"key|secret|password|user", name, re.IGNORECASE)
    ]
    assert len(secret) == 12
    assert all(_SECRET.fullmatch(value) for value in secret)
    assert sorted(example) == ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    assert "access.key" not in (HOME / "metastore" / "core-site.xml").read_text()
    assert _lines(".gitignore") == [".env"]


def test_names_of_hosts_are_names_of_services() -> None:
    """In every file that says where something is."""
    files = [source for source, _ in mounts()] + [HOME / "compose.yaml"]
    hosts = {
        host
        for file in files
        for host in re.findall(r"(?:http|thrift|spark)://([a-z]+):\d", file.read_text())
    }
    assert hosts - {"localhost"} == {"minio", "metastore", "master"}
    assert {"minio", "metastore", "master"} <= set(SERVICES)


def test_the_image_has_what_a_build_of_filesink_needs() -> None:
    """The Dockerfile copies the project's file and all that it names, and nothing of that is ignored."""
    lines = [line.split() for line in _lines("Dockerfile") if line.startswith("COPY")]
    copied = {name for _, *names, _ in lines for name in names}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    named = {project["project"]["readme"], *project["project"]["license-files"], *packages}
    assert copied == {"pyproject.toml", *named}
    let_in = {line.removeprefix("!") for line in _lines("Dockerfile.dockerignore") if line.startswith("!")}
    assert let_in == copied
    extras = re.search(r'"/src\[(.*)\]"', (HOME / "Dockerfile").read_text())
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["project"]["optional-dependencies"])


def test_its_page_begins_with_a_question_and_says_what_was_not_run() -> None:
    """And the page of examples asks it, too."""
    question, *rest = _lines("README.md")
    assert question.endswith("?")
    examples = (ROOT / "examples" / "README.md").read_text()
    assert question.removeprefix("# ") in examples
    assert "compose/README.md" in examples
    assert any("do not run these images" in line for line in rest)


@pytest.mark.spark
@pytest.mark.slow
def test_the_program_writes_every_trip_once_and_tells_of_each_day(
    spark: SparkSession,  # noqa: F811 - the fixture
    tmp_path: Path,
    program: ModuleType,
) -> None:
    """To a local path; a second run adds nothing, and readers find three days of 10,000."""
    metastore = MemoryMetastore()
    base = tmp_path / "trips"
    assert not program.write(program.trips(spark), str(base), metastore).already_committed
    assert program.write(program.trips(spark), str(base), metastore).already_committed
    table = metastore.get_table(TableName(database="default", table="trips"))
    assert table is not None
    days = [(f"2026-01-0{day}",) for day in (1, 2, 3)]
    assert [one.values for one in metastore.get_partitions(table, days)] == days
    query = f"SELECT day, count(*), count(DISTINCT trip) FROM '{base}/*/*.parquet' GROUP BY day ORDER BY day"  # noqa: S608
    assert [tuple(map(str, row)) for row in duckdb.sql(query).fetchall()] == [
        (day, "10000", "10000") for (day,) in days
    ]


@pytest.mark.spark
def test_the_environment_is_all_that_it_needs_of_s3(moto_server: S3Server) -> None:
    """With the variables of the Compose file, a driver and its tasks make the bucket and write into it."""
    places = {
        "AWS_ENDPOINT_URL_S3": moto_server.options["endpoint_url"],
        "AWS_ACCESS_KEY_ID": moto_server.options["key"],
        "AWS_SECRET_ACCESS_KEY": moto_server.options["secret"],
    }
    given = {name: places.get(name, value) for name, value in SERVICES["worker"]["environment"].items()}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _IN_A_PROCESS, str(HOME)],
        env={**kept, **given, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert "30,000 visible in" in done.stdout, done.stdout + done.stderr
    keys = [one["Key"] for one in moto_server.client().list_objects_v2(Bucket="trips-lake")["Contents"]]
    days = {key.split("/")[1] for key in keys if key.endswith(".parquet")}
    assert days == {f"day=2026-01-0{day}" for day in (1, 2, 3)}


def _lines(name: str) -> list[str]:
    return (HOME / name).read_text().splitlines()
