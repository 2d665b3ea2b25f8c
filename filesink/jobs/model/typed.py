"""From nodes to typed options, with errors that say file, line, option and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from filesink.errors import JobError
from filesink.jobs.model.options import Options, words_of
from filesink.jobs.model.secret import Secret
from filesink.jobs.text.place import Place, failure, nearest
from filesink.jobs.text.tree import Array, Entry, Node, Object, Scalar, deeper, plain

O = TypeVar("O", bound=Options)  # noqa: E741 - the options of something


@dataclass(frozen=True, slots=True, kw_only=True)
class Typing:
    """How options are read, and what has to be told about them.

    Args:
        inline_secrets: whether a secret may stand in the file itself.
        notes: sentences about words that change nothing; grows.
    """

    inline_secrets: bool = False
    notes: list[str] = field(default_factory=list)

    def typed(self, kind: type[O], node: Object, *, of: str) -> O:
        """The options of ``kind`` that ``node`` says.

        Args:
            kind: a class of options.
            node: what the file says.
            of: whose options they are, for messages, such as ``sink LocalFile``.

        Raises:
            JobError: ``JOB_OPTION``, ``JOB_VALUE``, ``JOB_SECRET``, ``JOB_REFUSED``.
        """
        values = self._values(kind, node, of)
        try:
            return kind.model_validate(values, context={"inline_secrets": self.inline_secrets})
        except ValidationError as error:
            entries = dict(_entries(kind, node, ""))
            found = [_failure(kind, detail, node, entries, of) for detail in error.errors()]
            raise min(found, key=lambda one: one[0])[1] from None

    def _values(self, kind: type[Options], node: Object, of: str) -> dict[str, Any]:
        """What pydantic is given: words without dots between them, and only those that have an effect."""
        values: dict[str, Any] = {}
        for word, entry in _entries(kind, node, ""):
            if self._has_no_effect(kind, word, entry, of):
                continue
            if word.startswith(kind.family) and kind.family:
                values.setdefault(kind.family_option, {})[word] = _referring(entry.value)
            else:
                values[word] = self._given(kind, word, entry.value, of)
        return values

    def _given(self, kind: type[Options], word: str, node: Node, of: str) -> Any:
        """The value of one word; a secret that is a variable of the environment stays a reference to it."""
        annotation = next((info.annotation for _, words, info in words_of(kind) if word in words), None)
        inner = _options_in(annotation)
        if inner is not None and isinstance(node, Object):
            return self._values(inner, node, of)
        if inner is not None and isinstance(node, Array):
            return [
                self._values(inner, one, of) if isinstance(one, Object) else plain(one) for one in node.items
            ]
        return _referring(node) if "Secret" in str(annotation) else plain(node)

    def _has_no_effect(self, kind: type[Options], word: str, entry: Entry, of: str) -> bool:
        """Whether a word changes nothing, which is noted; one that would is refused."""
        reason = kind.refused.get(word)
        if reason is not None:
            if plain(entry.value) in kind.harmless.get(word, ()):
                return True
            raise failure(entry.place, f"'{word}' of {of} has no counterpart: {reason}", code="JOB_REFUSED")
        if word in kind.without_effect:
            self.notes.append(f"{entry.place}: '{word}' of {of} changes nothing: {kind.without_effect[word]}")
            return True
        return False


def _entries(kind: type[Options], node: Object, prefix: str) -> Iterator[tuple[str, Entry]]:
    """Words and their entries; ``a { b = 1 }`` is the word ``a.b``, if there is such a one."""
    known = {word for _, words, _ in words_of(kind) for word in words}
    known |= {*kind.refused, *kind.without_effect}
    for entry in node:
        word = prefix + entry.key
        begins = any(one.startswith(f"{word}.") for one in known)
        in_family = bool(kind.family) and f"{word}.".startswith(kind.family)
        if isinstance(entry.value, Object) and word not in known and (begins or in_family):
            yield from _entries(kind, entry.value, f"{word}.")
        else:
            yield word, entry


def _referring(node: Node) -> Any:
    match node:
        case Scalar(variable=variable) if variable:
            return Secret(kind="env", name=variable)
        case Scalar(text=text):
            return text
        case Array(items=items):
            return [_referring(item) for item in items]
        case Object():
            return {entry.key: _referring(entry.value) for entry in node}


def _failure(
    kind: type[Options], detail: ErrorDetails, node: Object, entries: dict[str, Entry], of: str
) -> tuple[tuple[bool, int], JobError]:
    """The error of what pydantic has found, and its order: what is missing may only be spelled wrong."""
    place = _place(kind, detail["loc"], node, entries)
    return (detail["type"] == "missing", place.line), _error(kind, detail, place, of)


def _error(kind: type[Options], detail: ErrorDetails, place: Place, of: str) -> JobError:
    path = detail["loc"]
    shown = ".".join(str(step) for step in path)
    match detail["type"]:
        case "missing":
            return failure(place, f"{of} needs the option '{shown}'", code="JOB_OPTION")
        case "extra_forbidden":
            near = _nearest_option(kind, path)
            return failure(place, f"{of} has no option '{shown}'{near}", code="JOB_OPTION")
        case "inline_secret":
            return failure(place, f"'{shown}' of {of} {detail['msg']}", code="JOB_SECRET")
        case _:
            where = f"'{shown}' of {of}" if shown else of
            return failure(place, f"{where}: {_sentence(detail['msg'])}", code="JOB_VALUE")


def _sentence(text: str) -> str:
    return "i" + text[1:] if text.startswith("Input ") else text


def _place(
    kind: type[Options], path: tuple[int | str, ...], node: Object, entries: dict[str, Entry]
) -> Place:
    if not path:
        return node.place
    words: tuple[str, ...] = (str(path[0]),)
    for name, choices, _ in words_of(kind):
        if path[0] == name or path[0] in choices:
            words = (name, *choices)
    entry = next((entries[word] for word in words if word in entries), None)
    if entry is None:
        return node.place
    inner = deeper(entry.value, tuple(path[1:]))
    if isinstance(inner, Object):  # an unknown key is an entry of its own line
        return next((one.place for one in inner if one.key == path[-1]), inner.place)
    return entry.place if len(path) == 1 else inner.place


def _nearest_option(kind: type[Options], path: tuple[int | str, ...]) -> str:
    """The nearest word of the options that the last step of ``path`` is missing in."""
    inner: Any = kind
    for step in path[:-1]:
        if isinstance(step, str) and isinstance(inner, type) and issubclass(inner, Options):
            infos = [info for name, words, info in words_of(inner) if step == name or step in words]
            inner = _options_in(infos[0].annotation) if infos else None
    if not (isinstance(inner, type) and issubclass(inner, Options)):
        return ""
    known = [word for _, words, _ in words_of(inner) for word in words]
    return nearest(str(path[-1]), [*known, *inner.without_effect])


def _options_in(annotation: Any) -> Any:
    """The class of options in ``Schema``, ``Schema | None`` or ``tuple[Rule, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, Options):
        return annotation
    found = [_options_in(one) for one in getattr(annotation, "__args__", ())]
    return next((one for one in found if one is not None), None)
