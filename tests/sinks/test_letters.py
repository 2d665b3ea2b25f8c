"""The sink of the tests keeps the contract, with an aggregated committer, too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from tests.contracts.sink_contract import ExactlyOnceSinkContract
from tests.contracts.sink_site import SinkSite
from tests.sinks.letters import Letters


@dataclass
class LetterSite(SinkSite):
    """Letters named by their numbers."""

    letters: Letters

    def sink(self) -> Letters:
        return self.letters

    def batch(self, ids) -> pa.RecordBatch:
        return pa.record_batch({"value": pa.array(map(str, ids), pa.string())})

    def arrived(self) -> list[int]:
        return [int(name) for name in self.letters.arrived()]

    def announced(self) -> list[int]:
        return [int(path.name) for path in (self.letters.directory / "announced").iterdir()]


class TestLetters(ExactlyOnceSinkContract):
    @pytest.fixture
    def site(self, tmp_path: Path) -> SinkSite:
        for name in ("box", "announced"):
            (tmp_path / name).mkdir()
        return LetterSite(Letters(tmp_path, announces=True))
