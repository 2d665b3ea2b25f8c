"""Numbers of variable length, as Avro and protobuf have them: seven bits a byte, the lowest first."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """A number that is not negative; the top bit of a byte says that more follow."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
