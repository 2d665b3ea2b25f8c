"""What the options of anything in a job file derive from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from filesink.durations import parse_duration_ms
from filesink.errors import ConfigError
from formats.errors import FormatError
from formats.sizes import parse_size


class Options(BaseModel):
    """Typed options, frozen. A word that is none of them is an error.

    Attributes:
        refused: words of SeaTunnel that have no counterpart here, each with the reason. The value with which
            such a word changes nothing may be written all the same, see ``harmless``.
        harmless: values of refused words that ask for what happens anyway.
        without_effect: words that are accepted and change nothing, each with the reason, which is told.
        family: a prefix, such as ``spark.``, whose words all go to the option ``family_option``.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        coerce_numbers_to_str=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )
    refused: ClassVar[Mapping[str, str]] = {}
    harmless: ClassVar[Mapping[str, Sequence[Any]]] = {}
    without_effect: ClassVar[Mapping[str, str]] = {}
    family: ClassVar[str] = ""
    family_option: ClassVar[str] = ""


def option(default: Any = ..., *, doc: str, unit: str = "", words: Sequence[str] = (), **limits: Any) -> Any:
    """An option.

    Args:
        default: without one the option has to be there.
        doc: what it means, one sentence.
        unit: of the value, such as ``rows``.
        words: its names in a job file, the best one first; by default the name of the attribute.
        **limits: pydantic's, such as ``ge``.
    """
    if words:
        limits["validation_alias"] = AliasChoices(*words)
    return Field(default, description=doc, json_schema_extra={"unit": unit}, **limits)


def words_of(options: type[Options]) -> Iterator[tuple[str, tuple[str, ...], FieldInfo]]:
    """Each option: its attribute, its words, and what is known about it."""
    for name, info in options.model_fields.items():
        if name == options.family_option:
            continue
        alias = info.validation_alias
        words = tuple(str(one) for one in alias.choices) if isinstance(alias, AliasChoices) else (name,)
        yield name, words, info


def _milliseconds(given: Any) -> Any:
    try:
        digits = int(given) if isinstance(given, str) and given.strip().isdigit() else given
        return parse_duration_ms(digits, name="it", least=0)
    except ConfigError:
        raise PydanticCustomError("duration", "is a duration, such as 10000 (ms) or '10 s'") from None


def _bytes(given: Any) -> Any:
    try:
        return parse_size(given, name="it")
    except (FormatError, ValueError, TypeError):
        raise PydanticCustomError("size", "is a size, such as 1048576 (bytes) or '64MiB'") from None


def several(given: Any) -> Any:
    """A list may be written as one text with commas, or as a single value."""
    if isinstance(given, str):
        return [one.strip() for one in given.split(",") if one.strip()]
    return given if isinstance(given, list | tuple) else [given]


#: Milliseconds, written as a number or with a unit.
Milliseconds = Annotated[int, BeforeValidator(_milliseconds)]
#: Bytes, written as a number or with a unit.
Bytes = Annotated[int, BeforeValidator(_bytes)]
#: Names, written as a list or with commas between them.
Names = Annotated[tuple[str, ...], BeforeValidator(several)]
