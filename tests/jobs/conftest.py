"""Jobs that need Spark take the session of the other tests."""

from __future__ import annotations

from tests.spark.conftest import spark  # noqa: F401 - a fixture
