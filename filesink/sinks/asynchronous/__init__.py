"""Sinks that send entries to a service and wait for its answers: at least once, each entry with a key.

``AsyncSinkWriter`` is derived from, as Flink's is: who derives says what is sent, and sends it. In here, from
the pure to the busy: values (``entries``, ``answers``, ``sending``), what is sent when (``batches``,
``pace``, ``outbox``), the writer, and the tiers around it.
"""

from filesink.sinks.asynchronous.answers import Again, Answer, Delivered, Refused, Unusable
from filesink.sinks.asynchronous.entries import Entry, Request
from filesink.sinks.asynchronous.sending import Sending
from filesink.sinks.asynchronous.tiers import AsyncSink
from filesink.sinks.asynchronous.writer import AsyncSinkWriter

__all__ = [
    "Again",
    "Answer",
    "AsyncSink",
    "AsyncSinkWriter",
    "Delivered",
    "Entry",
    "Refused",
    "Request",
    "Sending",
    "Unusable",
]
