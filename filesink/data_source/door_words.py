"""Errors of the sink in the words of this door: its options instead of names of Python.

The sink behind this door is built by Python, and says what to change in its terms. Whoever has set options
finds none of them there, and no method to call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from filesink.data_source.options import NAMES
from filesink.errors import FilesinkError

# What is more than a name; the data source has no ``replace``.
_SENTENCES = {
    "say what to do with on_repeated_txn='replace', which replaces the files of the earlier write, or "
    "'skip', which keeps them": "keep the files of the earlier write with option onRepeatedTxn='skip', or "
    "replace them with FileSink.write(df, txn_id=…, on_repeated_txn='replace')",
    "on_new_query='append'": "option onNewQuery='append'",
    "mode='overwrite'": ".mode('overwrite')",
    "format_str": "option 'bucketTimeFormat'",
}
_OPTIONS = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): name for name in NAMES}
_METHOD = re.compile(r"\.(?P<name>on_\w+)\((?P<value>'\w+')\)")
_NAME = re.compile(rf"\b({'|'.join(name for name in _OPTIONS if '_' in name)})\b(?!=)")


@contextmanager
def in_words_of_options() -> Iterator[None]:
    """Have errors from inside name options. They stay what they are otherwise."""
    try:
        yield
    except FilesinkError as error:
        error.message = translated(error.message)
        raise


def translated(message: str) -> str:
    """``message`` with options for names of parameters and methods that stand for one."""
    for sentence, ours in _SENTENCES.items():
        message = message.replace(sentence, ours)
    message = _METHOD.sub(_of_method, message)
    return _NAME.sub(_of_name, message)


def _of_method(found: re.Match[str]) -> str:
    name = _OPTIONS.get(found["name"])
    return found[0] if name is None else f"option {name}={found['value']}"


def _of_name(found: re.Match[str]) -> str:
    name = _OPTIONS[found[0]]
    return name if name == "txnId" else f"option '{name}'"
