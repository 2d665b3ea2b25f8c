"""Graphs as SVG."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from filesink.page.graph import Box, graph

NAME = "{http://www.w3.org/2000/svg}"


def boxes(*ids: str) -> list[Box]:
    """Boxes with these ids."""
    return [Box(id=one, title=one, note="", kind="source") for one in ids]


def places(drawn: str) -> dict[str, tuple[int, int]]:
    """Where boxes stand."""
    return {
        str(group.findtext(f"{NAME}title")): (int(rect.attrib["x"]), int(rect.attrib["y"]))
        for group in ET.fromstring(drawn).iter(f"{NAME}g")  # noqa: S314 - our own
        for rect in group.iter(f"{NAME}rect")
    }


def test_boxes_stand_behind_those_that_feed_them() -> None:
    """On the longest way; and no two in one place."""
    edges = [("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")]
    found = places(graph(boxes("a", "d", "b", "c"), edges, label="x"))
    assert all(found[source][0] < found[target][0] for source, target in edges)
    assert len(set(found.values())) == 4


def test_what_is_in_a_box_is_text() -> None:
    """Nothing that a job file says becomes markup; long lines are cut."""
    box = Box(id="a", title="<script>" + "x" * 100, note='"&', kind='" onload="x')
    drawn = graph([box], [], label="<b>")
    root = ET.fromstring(drawn)  # noqa: S314 - our own
    assert not list(root.iter(f"{NAME}script"))
    assert all(len(text.text or "") <= 26 for text in root.iter(f"{NAME}text"))
    assert not any("onload" in name for one in root.iter() for name in one.attrib)


def test_no_boxes() -> None:
    """Are a picture without any."""
    assert places(graph([], [], label="x")) == {}
