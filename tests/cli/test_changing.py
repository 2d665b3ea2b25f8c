"""Commands that change something: the plan first, and with ``--yes`` what the plan says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import filesink
from filesink.naming import OutputFileConfig
from formats import Encoder
from tests.cli.running import Ran, run
from tests.fakes import keep_open, plan_of
from tests.fakes import records as lines
from tests.operations.broken_paths import flip, record, unfinished, whole, with_open_parts
from tests.operations.damage_to_files import file_lost, garbage, hidden_old, pending_lost
from tests.operations.damage_to_state import inventory_missing, mark_damaged
from tests.operations.test_fsck import everything
from tests.sink_directory.written import Written


def planned(*arguments: str | Path) -> Ran:
    """The plan alone, which changes nothing, for people and for machines."""
    base = Path(arguments[1])
    before = everything(base)
    ran = run(*arguments)
    assert "Nothing was done. Call it again with --yes" in ran.out
    assert run(*arguments, "--json").json["done"] is False
    assert everything(base) == before
    return ran


def done(*arguments: str | Path) -> object:
    """What was done, with ``--yes``."""
    ran = run(*arguments, "--yes", "--json")
    assert (ran.code, ran.err) == (0, "")
    found = json.loads(ran.out)
    assert found["done"] is True
    return found["result"]


def rows(base: Path) -> int | None:
    """Those that readers see."""
    return filesink.open(base).snapshot().rows


def test_recover_completes_what_was_decided(tmp_path: Path) -> None:
    """The epoch and its files are in the plan; then they are visible."""
    base = tmp_path / "base"
    unfinished(base)
    ran = planned("recover", base)
    assert "1 epoch to complete" in ran.out
    assert "batch 1" in ran.out
    assert rows(base) == 1
    result = done("recover", base)
    assert [epoch["epoch"] for epoch in result["published"]] == [1]  # type: ignore[index]
    assert rows(base) == 2
    assert run("fsck", base).code == 0


def test_recover_says_what_is_lost_and_gives_it_up_only_if_told(tmp_path: Path) -> None:
    """A file of a decided epoch is gone: an error names the ways out, and ``--lost accept`` is one."""
    base = tmp_path / "base"
    unfinished(base)
    pending_lost(base)
    (epoch,) = run("recover", base, "--json").json["plan"]["epochs"]
    assert (epoch["files"], epoch["lost"]) == (1, 1)
    ran = run("recover", base, "--yes")
    assert ran.code == 3
    assert len(ran.err.splitlines()) == 1
    assert run("fsck", base).code == 1
    assert done("recover", base, "--lost", "accept")["lost_rows"] == 1  # type: ignore[index]
    assert run("fsck", base).code == 0


def test_recover_stops_at_a_damaged_ledger(tmp_path: Path) -> None:
    """It names the file, and where to ask."""
    base = tmp_path / "base"
    unfinished(base)
    flip(record(base, "_filesink/uid-u", 1))
    ran = run("recover", base, "--yes")
    assert ran.code == 3
    assert "_filesink/uid-u/000000000001.record" in ran.err
    assert "filesink fsck" in ran.err


def test_finish_makes_visible_what_waits(tmp_path: Path) -> None:
    """Under the prefix and the ending that the sink has given; each row once."""
    base = tmp_path / "base"
    written = Written(base, partitions=())
    written.world.plan = replace(
        plan_of(Encoder.json_lines(), policy=keep_open(1 << 20, 10**9, 10**9)),
        names=OutputFileConfig(part_prefix="my-rows", part_suffix=".jsonl"),
    )
    world = written.world
    from tests.fakes import micro_batch

    for number, value in enumerate(("a", "b")):
        written._run(lines(value, bucket="day=1"), world.sink_id, micro_batch(number))
    assert "1 file to make visible: 2 rows" in planned("finish", base).out
    assert rows(base) == 0
    done("finish", base)
    (path,) = base.glob("day=1/*")
    assert path.name.startswith("my-rows-")
    assert path.suffix == ".jsonl"
    assert [json.loads(line)["value"] for line in path.read_text().splitlines()] == ["a", "b"]
    assert run("fsck", base, "--deep").code == 0
    assert "0 files to make visible" in run("finish", base, "--yes").out


def test_finish_asks_which_of_several_sinks(tmp_path: Path) -> None:
    """Both are named; with a uid the other stays as it is, and its stream goes on."""
    base = tmp_path / "base"
    written = with_open_parts(base)
    world = written.world
    world.uid = "v"
    from tests.fakes import micro_batch

    written._run(lines("c", bucket="day=1"), world.sink_id, micro_batch(0, query_id="q2"))
    ran = run("finish", base, "--yes")
    assert ran.code == 2
    assert "'uid-u', 'uid-v'" in ran.err
    done("finish", base, "--uid", "v")
    assert rows(base) == 1
    assert [held.sink for held in filesink.open(base).status().held] == ["uid-u"]


def test_finish_does_not_pass_over_a_damaged_ledger(tmp_path: Path) -> None:
    """Its rows may wait there: nobody says that there is nothing to do."""
    base = tmp_path / "base"
    with_open_parts(base)
    flip(record(base, "_filesink/uid-u", 1))
    ran = run("finish", base)
    assert (ran.code, "is damaged" in ran.err) == (3, True)


def test_finish_does_not_go_on_from_a_ledger_that_is_too_old(tmp_path: Path) -> None:
    """What it holds back may be visible already: its rows would be there twice, and fsck could not tell."""
    base = tmp_path / "base"
    with_open_parts(base)
    held = next(path for path in base.rglob(".*.inprogress.*") if "_filesink" not in path.parts)
    later = held.name.split(".")
    later[-2] = str(int(later[-2]) + 7)
    held.with_name(".".join(later)).write_bytes(b"of a later epoch")
    assert "TAIL_LOST" in run("fsck", base).out
    before = sorted(base.rglob("*"))
    for ran in (run("finish", base), run("finish", base, "--yes")):
        assert (ran.code, "[LOST_TAIL]" in ran.err) == (3, True)
    assert sorted(base.rglob("*")) == before


def test_a_stream_goes_on_after_finish(tmp_path: Path) -> None:
    """Its next batch begins new parts; nothing is there twice."""
    base = tmp_path / "base"
    written = with_open_parts(base)
    done("finish", base)
    from tests.fakes import micro_batch

    written._run(lines("c", bucket="day=1"), written.world.sink_id, micro_batch(2))
    done("finish", base)
    found = [line for path in base.glob("day=1/*") for line in path.read_text().splitlines()]
    assert sorted(json.loads(line)["value"] for line in found) == ["a", "b", "c"]
    assert run("fsck", base, "--deep").code == 0


def test_sweep_removes_what_nobody_needs(tmp_path: Path) -> None:
    """Garbage of any sink, and what is old; nothing that readers see."""
    base = tmp_path / "base"
    whole(base)
    before = everything(base)
    dead = {garbage(base), hidden_old(base)}
    ran = planned("sweep", base)
    assert all(path.name[:20] in ran.out for path in dead)
    result = done("sweep", base)
    assert {base / file["path"] for file in result["files"]} == dead  # type: ignore[index]
    assert everything(base) == before


def test_adopt_mends_an_inventory(tmp_path: Path) -> None:
    """What is wrong is in the plan; afterwards the files that are there can be read."""
    base = tmp_path / "base"
    whole(base)
    expected = sorted(file.path for file in filesink.open(base).snapshot().files)
    mark_damaged(base)
    assert "000001.mark is damaged" in planned("adopt", base).out
    done("adopt", base)
    assert sorted(file.path for file in filesink.open(base).snapshot().files) == expected
    assert run("fsck", base).code == 0


@pytest.mark.parametrize("grace", ["0 s", "1 h"])
def test_compact_merges_small_files(tmp_path: Path, grace: str) -> None:
    """By directory, with the codec that files have; readers by versions see each row once."""
    base = tmp_path / "base"
    whole(base)
    assert "8 files" in planned("compact", base).out
    done("compact", base, "--reader-grace", grace)
    snapshot = filesink.open(base).snapshot()
    assert (snapshot.rows, len(snapshot.files)) == (14, 3)
    assert snapshot.dataset().to_table().num_rows == 14
    assert run("fsck", base, "--deep").code == 0
    assert "0 files" in run("compact", base).out


def test_compact_says_that_lists_show_rows_twice(tmp_path: Path) -> None:
    """As long as what was merged stays for its readers."""
    base = tmp_path / "base"
    whole(base)
    told = " ".join(run("compact", base, "--reader-grace", "1 h", "--yes").out.split())
    assert "stays for 1 h, and until then who lists the directory sees its rows twice" in told


def test_compact_says_what_it_cannot_merge(tmp_path: Path) -> None:
    """Without a format that names tell, and with a codec where there is none."""
    base = tmp_path / "base"
    written = Written(base, partitions=())
    written.world.plan = plan_of(Encoder.csv())
    for value in ("a", "b"):
        written.write(lines(value, bucket="day=1"))
    ran = run("compact", base, "--yes")
    assert (ran.code, "--format" in ran.err) == (2, True)
    ran = run("compact", base, "--yes", "--format", "orc", "--compression", "zstd")
    assert (ran.code, "[CONFLICT]" in ran.err) == (2, True)


def test_publish_puts_success_files(tmp_path: Path) -> None:
    """Into every directory with live files, or into those that are named."""
    base = tmp_path / "base"
    whole(base)
    planned("publish", base, "--success-file", "_DONE")
    done("publish", base, "k=1", "k=3/", "--success-file", "_DONE")
    assert sorted(path.parent.name for path in base.rglob("_DONE")) == ["k=1", "k=3"]
    done("publish", base, "--success-file", "_DONE")
    assert sorted(path.parent.name for path in base.rglob("_DONE")) == ["k=1", "k=2", "k=3"]


@pytest.mark.parametrize(
    ("damage", "order"),
    [(mark_damaged, ["adopt", "recover", "sweep"]), (inventory_missing, ["recover", "adopt", "sweep"])],
)
def test_repair_does_what_commands_can_do(
    tmp_path: Path, damage: Callable[[Path], Path], order: list[str]
) -> None:
    """Each command when what it relies on is mended; afterwards nothing is wrong."""
    base = tmp_path / "base"
    unfinished(base)
    garbage(base)
    damage(base)
    ran = planned("repair", base)
    assert [line.split()[1] for line in ran.out.splitlines() if line.startswith("filesink ")] == order
    ran = run("repair", base, "--yes", "--json")
    assert (ran.code, ran.json["result"]) == (0, order)
    assert rows(base) == 2
    assert run("fsck", base, "--json").json["findings"] == []


def test_recover_takes_a_uid_or_the_id_of_its_sink(tmp_path: Path) -> None:
    """As its help says, and as ``status`` shows them."""
    base = tmp_path / "base"
    unfinished(base)
    for name in ("u", "uid-u"):
        (epoch,) = run("recover", base, "--uid", name, "--json").json["plan"]["epochs"]
        assert epoch["sink"] == "uid-u"
    done("recover", base, "--uid", "uid-u")
    assert rows(base) == 2


def test_repair_tells_machines_what_only_people_can_mend(tmp_path: Path) -> None:
    """With the code of each finding, since no command has it."""
    base = tmp_path / "base"
    whole(base)
    lost = file_lost(base)
    ran = run("repair", base, "--json")
    (found,) = ran.json["plan"]["hand"]
    mend = found.pop("mend")
    assert (ran.code, found) == (1, {"code": "FILE_LOST", "path": str(lost.relative_to(base))})
    assert str(lost.relative_to(base)) in mend


def test_repair_gives_nothing_up(tmp_path: Path) -> None:
    """A lost file is none of its business."""
    base = tmp_path / "base"
    whole(base)
    file_lost(base)
    before = everything(base)
    ran = run("repair", base, "--yes")
    assert "0 findings can be mended by commands, 1 by hand only" in ran.out
    assert "No command can do any of it." in ran.out
    (finding,) = filesink.fsck(base).findings
    assert f"FILE_LOST -> {finding.mend}" in " ".join(ran.out.split())
    assert ran.code == 1
    assert everything(base) == before


def test_a_plan_of_one_is_no_plan_of_another(tmp_path: Path) -> None:
    """Two copies of a path are two paths."""
    unfinished(tmp_path / "base")
    shutil.copytree(tmp_path / "base", tmp_path / "copy")
    done("recover", tmp_path / "copy")
    assert rows(tmp_path / "copy") == 2
    assert rows(tmp_path / "base") == 1
