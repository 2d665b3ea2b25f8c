"""Addresses and options of a service: what is refused, and what is shown to nobody."""

from __future__ import annotations

import pytest

from filesink import ConfigError, HttpService, HttpSink

URL = "https://example.org:8443/v1/events?key=hush"


def test_secrets_are_shown_nowhere() -> None:
    """Neither the query of an address nor a header, nor the address of a sink in a log."""
    service = HttpService(URL, headers={"X-Api-Key": "hush"}, token_env="TOKEN")
    sink = HttpSink(service, ledger="memory://ledger")
    assert "hush" not in repr(service) + repr(sink) + service.shown
    assert service.shown == "https://example.org:8443/v1/events"
    assert service.shown in repr(sink)


def test_an_address_alone_will_do() -> None:
    """As a service with all defaults."""
    assert HttpService.at(URL) == HttpService(URL)


@pytest.mark.parametrize(
    "url", ["https://me@example.org/", "https://me:hush@example.org/", "http://:hush@h/"]
)
def test_credentials_in_an_address_are_refused(url: str) -> None:
    """Without being repeated."""
    with pytest.raises(ConfigError) as raised:
        HttpService(url)
    assert raised.value.code == "CREDENTIALS"
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "ftp://example.org/", "https://", "https:///path", "http://h:0/", "http://h:x/"),
        *("http://h:99999/", "http://[::1/", "http://h/a b", "http://h/\n", "http://h/é", "http://h/#part"),
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """When it is given, not when the first record is sent."""
    with pytest.raises(ConfigError) as raised:
        HttpService(url)
    assert raised.value.code == "BAD_VALUE"


@pytest.mark.parametrize(
    "options",
    [
        *({"body": "xml"}, {"method": "GET"}, {"headers": {"a b": "c"}}, {"headers": {"a": "b\r\nc: d"}}),
        *({"headers": {"Content-length": "1"}}, {"headers": {"transfer-encoding": "chunked"}}),
        *(
            {"headers": {"X-A": "1", "x-a": "2"}},
            {"key_header": "Authorization"},
            {"key_header": "connection"},
        ),
        *({"headers": [("a", "b")]}, {"token_env": "Bearer abc"}, {"token_env": ""}, {"key_header": "a:b"}),
        {"headers": {"idempotency-KEY": "mine"}},
        {"headers": {"X-Key": "mine"}, "key_header": "x-key"},
        {"headers": {"authorization": "Bearer mine"}, "token_env": "TOKEN"},
        *({"timeout": 0}, {"timeout": "soon"}, {"ca_file": ""}, {"judge": "yes"}, {"judge": int}),
    ],
    ids=str,
)
def test_wrong_options_are_refused(options) -> None:
    """A header that would smuggle another one in as well."""
    with pytest.raises(ConfigError) as raised:
        HttpService("https://example.org/", **options)
    assert raised.value.code == "BAD_VALUE"
