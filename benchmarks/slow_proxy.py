"""A TCP proxy that delays what passes by half a round trip each way, as a network does.

python benchmarks/slow_proxy.py LISTEN TARGET MILLISECONDS
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from functools import partial

_BLOCK = 1 << 16  # bytes


async def serve(listen: int, target: int, delay: float) -> None:
    """Accept connections until the process is ended."""
    server = await asyncio.start_server(partial(_connect, target, delay), "127.0.0.1", listen)
    async with server:
        await server.serve_forever()


async def _connect(
    target: int, delay: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
    await asyncio.gather(_pass_on(reader, far_writer, delay), _pass_on(far_reader, writer, delay))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    loop = asyncio.get_running_loop()
    last = loop.create_future()
    last.set_result(None)
    with contextlib.suppress(ConnectionError):
        while block := await reader.read(_BLOCK):
            last = asyncio.ensure_future(_later(last, writer, block, loop.time() + delay))
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
        asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000))
