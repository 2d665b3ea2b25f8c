"""Parquet's modular encryption, with keys that a key management service wraps.

Our values hold names of keys; the keys themselves are with the user's client of the service, which
every task opens anew. Spark reads such files with the same names (``parquet.encryption.…`` options).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from formats.arguments import check_names, instance_of, kind_of, option_error
from formats.errors import FormatError

_CACHED: Final = timedelta(minutes=10)  # how long unwrapped keys stay in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetEncryption:
    """Which keys protect what.

    Attributes:
        open_kms: makes a ``pyarrow.parquet.encryption.KmsClient`` of a ``KmsConnectionConfig``; anything
            that can be pickled, such as a class at the top of a module.
        footer_key: the service's name of the key of the footer, and of all columns if no other is named.
        column_keys: columns by the name of their key; columns without one are not encrypted then.

    Raises:
        FormatError: kind ``"option"``; no name of a key, or pyarrow was built without encryption.
    """

    open_kms: Callable[[Any], Any]
    footer_key: str
    column_keys: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the names and that pyarrow can encrypt."""
        if not callable(self.open_kms):
            raise option_error(f"open_kms must make a client of a key service, got {kind_of(self.open_kms)}")
        for key, names in instance_of(self.column_keys, Mapping, name="column_keys").items():
            instance_of(key, str, name="the name of a column key")
            check_names(names, name="each of column_keys")
        if not instance_of(self.footer_key, str, name="footer_key") or not all(self.column_keys):
            raise FormatError("encryption needs the names of its keys", kind="option")
        _pyarrow()

    def for_writing(self) -> tuple[Any, Any]:
        """The properties of one file, for pyarrow, and the factory that must live as long as they."""
        encryption = _pyarrow()
        factory = encryption.CryptoFactory(self.open_kms)
        columns = {key: list(names) for key, names in self.column_keys.items()}
        how = encryption.EncryptionConfiguration(
            footer_key=self.footer_key,
            column_keys=columns or None,
            uniform_encryption=not columns,
            cache_lifetime=_CACHED,
        )
        return factory.file_encryption_properties(encryption.KmsConnectionConfig(), how), factory

    def for_reading(self) -> tuple[Any, Any]:
        """As ``for_writing``, for a file that is read."""
        encryption = _pyarrow()
        factory = encryption.CryptoFactory(self.open_kms)
        how = encryption.DecryptionConfiguration(cache_lifetime=_CACHED)
        return factory.file_decryption_properties(encryption.KmsConnectionConfig(), how), factory

    def signature(self) -> str:
        """Names of keys, never keys."""
        pairs = sorted((key, tuple(names)) for key, names in self.column_keys.items())
        return f"{self.footer_key!r} {pairs!r}"


def _pyarrow() -> Any:
    try:
        from pyarrow.parquet import encryption
    except ImportError as error:
        raise FormatError("this build of pyarrow cannot encrypt Parquet", kind="option") from error
    return encryption
