"""What the feed costs and how soon it is: followers of a long history, and receivers that fail.

Without Spark. Most epochs are appended in memory and then written to this machine's disk; the last ones are
appended there while followers wait, each a process of its own. Each has to have every version once, in
order, and all have to have been told the same. Then receivers are told of the last epochs: a service of HTTP
that fails half of the time, and a queue of SQS, of moto.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import logging
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3

import filesink
from filesink import DeliveryError, SqsNotification, WebhookNotification
from filesink.exports.notifications.notification import Notification
from filesink.inventory.appending import Inventory
from filesink.inventory.entry import AddedFile, Cause, Draft
from filesink.naming import new_part_id, sink_tag
from filesink.storage.memory import MemoryFiles, MemoryStore
from filesink.storage.open import open_store
from filesink.system import SystemClock, SystemIds

SINK = "uid-flights"
IDLE = "60 s"  # that nothing comes, until a follower gives up


def main() -> None:
    """Append, follow, tell."""
    arguments = _arguments()
    if arguments.follow:
        follow(arguments.follow, arguments.after, arguments.until)
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as base:
        history = arguments.epochs - arguments.live
        in_memory(Path(base), history)
        followed(base, arguments)
        receivers(base, arguments)
    print(f"load of this machine: {os.getloadavg()[0]:.1f}")


def in_memory(base: Path, epochs: int) -> None:
    """A long history, folded as it came."""
    files, clock, ids = MemoryFiles(), SystemClock(), SystemIds()
    inventory = Inventory(MemoryStore(files), clock=clock, ids=ids)
    started = time.perf_counter()
    for slot in range(epochs):
        inventory.append(_draft(slot, ids), floor=inventory.newest())
    for path, file in files.files.items():
        target = base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
    (base / "_filesink" / SINK).mkdir(parents=True, exist_ok=True)
    print(f"{epochs:,} epochs appended in memory: {time.perf_counter() - started:.0f} s")


def followed(base: str, arguments: argparse.Namespace) -> None:
    """Followers that began at all places, while more epochs come."""
    history, until = arguments.epochs - arguments.live, arguments.epochs
    places = [0, 0, history] + [history * number // 7 for number in range(arguments.followers - 3)]
    command = [sys.executable, __file__, "--follow", base, "--until", str(until)]
    running = [
        subprocess.Popen([*command, "--after", str(place)], stdout=subprocess.PIPE, text=True)
        for place in places
    ]
    for one in running:  # each says so when it has caught up
        print(one.stdout.readline().strip() if one.stdout else "")
    put = live(base, range(history, until), arguments.pause)
    found = [json.loads(one.communicate()[0]) for one in running]
    late = sorted(
        1000 * (at - put[int(version)])
        for one in found
        for version, at in one["came"].items()
        if int(version) in put
    )
    if any(one["missed"] for one in found) or len({one["digest"] for one in found}) != 1:
        raise SystemExit("followers have missed something, or were told other things")
    print(f"{len(found)} followers to {until:,}: none missed, none twice, all told the same")
    print(
        f"after publication: p50 {late[len(late) // 2]:.1f} ms, p99 {late[len(late) * 99 // 100]:.1f} ms, "
        f"longest {late[-1]:.1f} ms, of {len(late):,}"
    )


def live(base: str, slots: range, pause: float) -> dict[int, float]:
    """More epochs, on the disk; when each version was put."""
    ids, put = SystemIds(), {}
    inventory = Inventory(open_store(base, {}), clock=SystemClock(), ids=ids)
    inventory.newest()
    taken = []
    for slot in slots:
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - pauses
        draft, started = _draft(slot, ids), time.perf_counter()
        put[slot + 1] = time.time()  # before: a follower may be faster than the call is
        inventory.append(draft, floor=inventory.newest())
        taken.append(time.perf_counter() - started)
    print(f"an epoch took {1000 * statistics.median(taken):.1f} ms to append, which is in what follows")
    return put


def follow(base: str, after: int, until: int) -> None:
    """What a follower does; prints what it has seen. Half of the way it stops, and begins anew."""
    started, processor = time.perf_counter(), time.process_time()
    newest = filesink.open(base).version
    came: dict[int, float] = {}
    seen, missed, digest, place = 0, 0, hashlib.sha256(), after
    for stop in sorted({(after + newest) // 2, newest, until}):
        for entry in filesink.follow(base, after=place, until=stop, wait=IDLE):
            came[entry.version] = time.time()
            missed += entry.version != place + 1
            place, seen = entry.version, seen + 1
            if place > newest:
                digest.update(f"{entry.id} {[file.path for file in entry.added]} {entry.removed}".encode())
        if stop == newest:
            spent, processor = time.perf_counter() - started, time.process_time() - processor
            print(
                f"from {after:,} to {newest:,}: {spent:.1f} s, {processor:.1f} s of the processor", flush=True
            )
    live_only = {version: at for version, at in came.items() if version > newest}
    missed += seen != until - after
    print(json.dumps({"came": live_only, "missed": missed, "digest": digest.hexdigest()}))


def receivers(base: str, arguments: argparse.Namespace) -> None:
    """Tell of the last epochs."""
    after = arguments.epochs - arguments.told
    with failing() as (url, taken, asked):
        tell(base, WebhookNotification(url, after=after))
        _check(taken, after, arguments.epochs)
        print(f"webhook: {len(asked):,} requests for {arguments.told:,} epochs; none missed, in order")
    with queue() as (client, url):
        tell(base, SqsNotification(url, client=client, after=after))
        bodies = []
        while messages := client.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                bodies.append(json.loads(message["Body"])["id"])
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        _check(bodies, after, arguments.epochs)


def tell(base: str, notification: Notification) -> None:
    """As a driver does that tries again."""
    directory, started = filesink.open(base), time.perf_counter()
    before = notification.version(directory)
    while notification.version(directory) < directory.version:
        with contextlib.suppress(DeliveryError):
            filesink.export(base, notification)
    each = 1000 * (time.perf_counter() - started) / (directory.version - before)
    print(f"{notification.name}: {each:.1f} ms an epoch")


@contextlib.contextmanager
def failing() -> Iterator[tuple[str, list[str], list[str]]]:
    """A service that fails half of the time; its address, the ids that it has taken, and all that came."""
    taken: list[str] = []
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(event["id"])
            fails = random.random() < 0.5  # noqa: S311 - chance
            if not fails:
                taken.append(event["id"])
            self.send_response(500 if fails else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", taken, asked
    finally:
        server.shutdown()
        thread.join()


@contextlib.contextmanager
def queue() -> Iterator[tuple[Any, str]]:
    """A fifo queue of moto: a client, and its address."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        client = boto3.client(
            "sqs",
            endpoint_url=f"http://127.0.0.1:{server.get_host_and_port()[1]}",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 - moto's
        )
        yield (
            client,
            client.create_queue(QueueName="epochs.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"],
        )
    finally:
        server.stop()


def _check(ids: list[str], after: int, until: int) -> None:
    versions = [int(one.partition("/")[2]) for one in dict.fromkeys(ids)]
    if versions != list(range(after + 1, until + 1)):
        raise SystemExit("a receiver has missed something, or has another order")
    print(f"{len(ids):,} events were taken, {len(versions):,} after dropping ids that were seen")


def _draft(slot: int, ids: SystemIds) -> Draft:
    part = f"day=2026-{slot % 12 + 1:02d}/part-{new_part_id(sink_tag(SINK), slot, ids)}-0.parquet"
    now_ms = SystemClock().now_ms()
    return Draft(
        sink=SINK,
        slot=slot,
        nonce=ids.uuid(),
        cause=Cause(kind="micro-batch", query_id="query", batch_id=slot),
        decided_ms=now_ms,
        visible_ms=now_ms,
        rows=1_000,
        size=1_000_000,
        schema="0123456789abcdef",
        added=(AddedFile(path=part, size=1_000_000, rows=1_000),),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=100_000)
    parser.add_argument("--live", type=int, default=500, help="how many of them come while followers wait")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between these, about")
    parser.add_argument("--told", type=int, default=500, help="how many of them receivers are told of")
    parser.add_argument("--followers", type=int, default=10)
    parser.add_argument("--directory", help="where the path is made; by default where temporary files are")
    parser.add_argument("--follow", help=argparse.SUPPRESS)
    parser.add_argument("--after", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
