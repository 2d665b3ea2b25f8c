"""A TCP proxy that delays what passes by half a round trip each way, as a network does.

python benchmarks/slow_proxy.py LISTEN TARGET MILLISECONDS MEGABYTES

No connection passes on more than so many megabytes a second in either direction.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass
from functools import partial

_BLOCK = 1 << 18  # bytes


@dataclass(frozen=True, slots=True)
class Link:
    """Seconds that each byte takes to arrive, and how many may be sent in a second."""

    delay: float
    rate: float


async def serve(listen: int, target: int, link: Link) -> None:
    """Accept connections until the process is ended."""
    server = await asyncio.start_server(partial(_connect, target, link), "127.0.0.1", listen, limit=_BLOCK)
    async with server:
        await server.serve_forever()


async def _connect(
    target: int, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target, limit=_BLOCK)
    await asyncio.gather(_pass_on(reader, far_writer, link), _pass_on(far_reader, writer, link))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: Link) -> None:
    loop = asyncio.get_running_loop()
    last = loop.create_future()
    last.set_result(None)
    sent = 0.0  # when the last byte read so far leaves
    with contextlib.suppress(ConnectionError):
        while block := await reader.read(_BLOCK):
            sent = max(sent, loop.time()) + len(block) / link.rate
            last = asyncio.ensure_future(_later(last, writer, block, sent + link.delay))
        await last
        writer.close()


async def _later(
    before: asyncio.Future[None], writer: asyncio.StreamWriter, block: bytes, due: float
) -> None:
    await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
    await before  # blocks keep their order
    with contextlib.suppress(ConnectionError):
        writer.write(block)
        await writer.drain()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        there = Link(delay=float(sys.argv[3]) / 1000, rate=float(sys.argv[4]) * 1e6)
        asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), there))
