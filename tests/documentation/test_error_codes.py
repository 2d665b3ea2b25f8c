"""docs/reference/error-codes.md is what the sources say: made of them, and made anew when they change."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

import filesink

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path(str(filesink.__file__)).resolve().parents[1]

_CLASSES = '''
class FilesinkError(Exception):
    """Base."""

class StorageError(FilesinkError):
    """A store did not."""

class CommitConflictError(StorageError):
    """Something stands there."""
'''
_MAKERS = """
from filesink.errors import CommitConflictError, StorageError

EXISTS = "EXISTS"
NEEDED = "some space"
_ADVICE = {EXISTS: "move it away", "NO_SPACE": f"free {NEEDED}"}

def failed(code: str, where: str) -> StorageError:
    kind = CommitConflictError if code == EXISTS else StorageError
    return kind(f"cannot write '{where}'; {_ADVICE[code]}", code=code)

def refused(path: str, is_gone: bool) -> StorageError:
    raise StorageError(
        f"{path} is {'gone' if is_gone else 'full'}: {'make' if is_gone else 'empty'} it",
        code="GONE" if is_gone else "FULL",
    )

def elsewhere(file: object) -> StorageError:
    return failed("NO_SPACE", file.name)
"""


@pytest.fixture(name="maker")
def _maker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that writes the page; it is a program, in no package."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    return importlib.import_module("error_codes")


@pytest.fixture(name="package")
def _package(tmp_path: Path) -> Path:
    package = tmp_path / "filesink"
    package.mkdir()
    (package / "errors.py").write_text(_CLASSES)
    (package / "store.py").write_text(_MAKERS)
    return package


def test_the_page_is_as_the_sources_are(maker: ModuleType) -> None:
    """Who changes a message runs ``python docs/site/error_codes.py``."""
    roots = [INSTALLED / name for name in maker.PACKAGES]
    assert maker.page(roots, maker.notes()) == (ROOT / "docs" / "reference" / "error-codes.md").read_text()


def test_a_changed_message_changes_the_page(maker: ModuleType, package: Path) -> None:
    """So a page that nobody has made anew fails the test above."""
    before = maker.page([package], {})
    store = package / "store.py"
    store.write_text(store.read_text().replace("move it away", "leave it"))
    assert "leave it" not in before
    assert "leave it" in maker.page([package], {})


def test_each_class_has_the_codes_that_it_is_made_with(maker: ModuleType, package: Path) -> None:
    """By a table of advice, a choice of classes, a choice of codes, and a function that takes the code."""
    made = maker.Sources([package]).errors()
    assert {(error.kind, error.code, error.message) for error in made} == {
        ("CommitConflictError", "EXISTS", "cannot write '‹where›'; move it away"),  # noqa: RUF001
        ("StorageError", "NO_SPACE", "cannot write '‹where›'; free some space"),  # noqa: RUF001
        ("StorageError", "NO_SPACE", "cannot write '‹name›'; free some space"),  # noqa: RUF001
        ("StorageError", "GONE", "‹path› is gone: make it"),  # noqa: RUF001
        ("StorageError", "FULL", "‹path› is full: empty it"),  # noqa: RUF001
    }


def test_a_note_about_nothing_is_refused(maker: ModuleType, package: Path) -> None:
    """A code that is gone takes its note with it."""
    assert "**Mend it.**" in maker.page([package], {"StorageError": {"FULL": "Mend it."}})
    with pytest.raises(SystemExit, match="StorageError OLD"):
        maker.page([package], {"StorageError": {"OLD": "Mend it."}})
