"""Plans as the store of jobs keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from filesink.errors import StateCorruptError
from filesink.jobs.plans.values import Edge, Pipeline, Plan, Vertex
from filesink.jobs.text.place import Place


def described(plan: Plan) -> dict[str, Any]:
    """Values of JSON."""
    return asdict(plan)


def plan_of(value: Mapping[str, Any]) -> Plan:
    """The plan that ``described`` was given.

    Raises:
        StateCorruptError: it is none.
    """
    try:
        pipelines = tuple(_pipeline(one) for one in value["pipelines"])
        return Plan(name=value["name"], mode=value["mode"], pipelines=pipelines, notes=tuple(value["notes"]))
    except (KeyError, TypeError):
        raise StateCorruptError("a record in the store of jobs holds no plan", code="JSON") from None


def _pipeline(value: Mapping[str, Any]) -> Pipeline:
    return Pipeline(
        number=value["number"],
        vertices=tuple(_vertex(one) for one in value["vertices"]),
        edges=tuple(Edge(**one) for one in value["edges"]),
    )


def _vertex(value: Mapping[str, Any]) -> Vertex:
    options = tuple((name, text) for name, text in value["options"])
    return Vertex(**{**value, "options": options, "place": Place(**value["place"])})
