"""A job in SQL, to the written tree that HOCON gives.

    /* config
    env { job.mode = BATCH }
    */
    CREATE TABLE flights WITH ('connector' = 'LocalFile', 'type' = 'source', 'path' = '/data/in', …);
    CREATE TABLE late WITH ('connector' = 'LocalFile', 'type' = 'sink', 'path' = '/data/late', …);
    CREATE TABLE delayed AS SELECT * FROM flights WHERE dep_delay > 0;
    INSERT INTO late SELECT * FROM delayed;

Rules:
1. ``CREATE TABLE … WITH`` is a source or a sink, ``AS SELECT`` and ``INSERT INTO … SELECT`` are transforms
   ``Sql`` in Spark's SQL, which is not read here: only its tables are looked for.
2. A value that begins with ``{`` or ``[`` is HOCON, as in SeaTunnel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from filesink.jobs.text.characters import Characters
from filesink.jobs.text.hocon import Include, read_hocon, read_value, reference
from filesink.jobs.text.place import Place, failure, nearest
from filesink.jobs.text.sql_statements import Statement, statements
from filesink.jobs.text.tree import Field, Reference, Text, Written, WrittenArray, WrittenObject

_CONFIG = re.compile(r"/\*\s*config\b(.*?)\*/", re.DOTALL)
_TABLE = re.compile(r"create\s+table\s+(?:if\s+not\s+exists\s+)?([\w.`]+)\s+with\s*\(", re.IGNORECASE)
_VIEW = re.compile(
    r"create\s+(?:temporary\s+)?(?:table|view)\s+([\w.`]+)\s+as\s+(.+)", re.IGNORECASE | re.DOTALL
)
_INSERT = re.compile(r"insert\s+into\s+(?:table\s+)?([\w.`]+)\s+(.+)", re.IGNORECASE | re.DOTALL)
_OWN = {"connector", "type"}


def read_sql(text: str, file: str, include: Include) -> WrittenObject:
    """The fields of a file.

    Raises:
        JobError: ``JOB_SYNTAX``, ``JOB_GRAPH``.
    """
    config = _CONFIG.search(text)
    fields: list[Field] = []
    if config is not None:
        before = "\n" * text.count("\n", 0, config.start(1))  # so that lines are those of the file
        fields.extend(read_hocon(before + config[1], file, include).fields)
        text = _CONFIG.sub(lambda found: "\n" * found[0].count("\n"), text, count=1)
    tables = _Tables(include=include)
    for statement in statements(text, file):
        tables.add(statement)
    fields.extend(tables.sections(Place(file, 1)))
    return WrittenObject(fields=tuple(fields), place=Place(file, 1))


@dataclass(slots=True)
class _Tables:
    """What the statements up to here have made."""

    include: Include
    declared: dict[str, tuple[Place, dict[str, Written]]] = field(default_factory=dict)
    made: dict[str, Place] = field(default_factory=dict)
    transforms: list[Field] = field(default_factory=list)
    inserts: list[tuple[str, str, Place]] = field(default_factory=list)

    def add(self, statement: Statement) -> None:
        text, place = statement.text, statement.place
        if found := _TABLE.match(text):
            name = _name(found[1])
            self._refuse_known(name, place)
            self.declared[name] = (place, dict(_options(text[found.end() - 1 :], place, self.include)))
        elif found := _VIEW.match(text):
            name = _name(found[1])
            self._refuse_known(name, place)
            self.made[name] = place
            self._select(found[2], name, place)
        elif found := _INSERT.match(text):
            output = f"insert-{len(self.inserts) + 1}"
            self._select(found[2], output, place)
            self.inserts.append((_name(found[1]), output, place))
        else:
            word = " ".join(text.split()[:2])
            raise failure(
                place,
                f"'{word}' is none of CREATE TABLE … WITH, CREATE TABLE … AS SELECT and INSERT INTO",
                code="JOB_SYNTAX",
            )

    def sections(self, place: Place) -> Iterator[Field]:
        """``source``, ``transform`` and ``sink``."""
        sources = [self._declared(name) for name in self._of_type("source")]
        sinks = [self._sink(*insert) for insert in self.inserts]
        for name in set(self._of_type("sink")) - {name for name, _, _ in self.inserts}:
            raise failure(self.declared[name][0], f"nothing is inserted into '{name}'", code="JOB_GRAPH")
        for section, blocks in (("source", sources), ("transform", self.transforms), ("sink", sinks)):
            yield _field(section, WrittenObject(fields=tuple(blocks), place=place), place)

    def _of_type(self, kind: str) -> list[str]:
        targets = {name for name, _, _ in self.inserts}
        return [
            name
            for name, (_, options) in self.declared.items()
            if _plain(options.get("type"), "sink" if name in targets else "source") == kind
        ]

    def _declared(self, name: str, output: str = "") -> Field:
        place, options = self.declared[name]
        connector = _plain(options.get("connector"), "")
        if not connector:
            raise failure(place, f"the table '{name}' has no option 'connector'", code="JOB_SYNTAX")
        written = [_field(key, value, place) for key, value in options.items() if key not in _OWN]
        own = "plugin_input" if output else "plugin_output"
        written.append(_field(own, _text(output or name, place), place))
        return _field(connector, WrittenObject(fields=tuple(written), place=place), place)

    def _sink(self, name: str, output: str, place: Place) -> Field:
        if name not in self._of_type("sink"):
            raise failure(
                place,
                f"INSERT INTO '{name}': there is no sink of this name{nearest(name, self._of_type('sink'))}",
                code="JOB_GRAPH",
            )
        return self._declared(name, output)

    def _select(self, query: str, output: str, place: Place) -> None:
        names = (*self._of_type("source"), *self.made)
        inputs = [name for name in names if name != output and _holds(query, name)]
        items = tuple(_text(name, place) for name in inputs)
        written = (
            _field(
                "plugin_input", Written(pieces=(WrittenArray(items=items, place=place),), place=place), place
            ),
            _field("plugin_output", _text(output, place), place),
            _field("query", _text(query, place), place),
        )
        self.transforms.append(_field("Sql", WrittenObject(fields=written, place=place), place))

    def _refuse_known(self, name: str, place: Place) -> None:
        older = self.declared[name][0] if name in self.declared else self.made.get(name)
        if older is not None:
            raise failure(place, f"the table '{name}' is there already, since {older}", code="JOB_GRAPH")


def _options(text: str, place: Place, include: Include) -> Iterator[tuple[str, Written]]:
    """``('name' = 'value', …)``."""
    reading = Characters(text, place.file, place.line)
    reading.takes("(")
    while True:
        reading.space(also="\n,")
        if reading.takes(")"):
            return
        here = reading.place
        name = _in_quotes(reading)
        reading.space()
        if not reading.takes("="):
            raise reading.error(f"'{name}' has no value; write '=' and a value in quotes behind it")
        reading.space()
        value = _in_quotes(reading)
        is_tree = value.lstrip().startswith(("{", "["))
        yield name, read_value(value, here, include) if is_tree else _text(value, here)


def _in_quotes(reading: Characters) -> str:
    quote = reading.next
    if quote not in {"'", '"'}:
        raise reading.error("options of a table are written 'name' = 'value'")
    reading.at += 1
    found = reading.until(quote)
    while reading.sees(quote * 2):  # two of them are one
        reading.at += 2
        found += quote + reading.until(quote)
    if not reading.takes(quote):
        raise reading.error("a text in quotes has no end")
    return found


def _holds(query: str, name: str) -> bool:
    """Whether a query names a table, outside of its texts."""
    bare = re.sub(r"'(?:[^']|'')*'", "''", query).replace("`", "")
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", bare) is not None


def _name(text: str) -> str:
    return text.replace("`", "")


def _plain(written: Written | None, default: str) -> str:
    if written is None:
        return default
    return "".join(piece.text for piece in written.pieces if isinstance(piece, Text))


def _text(text: str, place: Place) -> Written:
    """A value that is a whole reference is one; SQL has no other way to write it."""
    if text.startswith("${") and text.endswith("}") and text.count("${") == 1:
        found: Text | Reference = reference(
            text[2:-1].removeprefix("?"), place, optional="?" * text.startswith("${?")
        )
        return Written(pieces=(found,), place=place)
    return Written(pieces=(Text(text=text, is_quoted=True),), place=place)


def _field(key: str, value: Written | WrittenObject, place: Place) -> Field:
    written = value if isinstance(value, Written) else Written(pieces=(value,), place=place)
    return Field(key=key, value=written, place=place)
