"""PROXY, against a PRIMARY that answers as a test wants it to."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing

import pytest

from nudge.interfaces.stdio import Pipe
from nudge.process import endpoint
from nudge.process.connection import Connection
from nudge.process.proxy import Proxy
from nudge.settings import config
from tests.unit.process.primaries import FakePrimary, result


@pytest.fixture
def directory() -> Iterator[str]:
    """Short: a socket path has 104 bytes."""
    path = tempfile.mkdtemp(prefix="nudge-", dir="/tmp")
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_a_directory_that_is_removed_before_the_session_is_joined(directory: str) -> None:
    """PRIMARY makes it again; the client is served meanwhile."""
    request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "nudge_status", "arguments": {}}}
    for_proxy, to_proxy = os.pipe()
    from_proxy, for_client = os.pipe()
    os.write(to_proxy, json.dumps(request).encode() + b"\n")
    os.close(to_proxy)
    with FakePrimary(directory, lambda _call: result({})):
        published = endpoint.read(directory)
        assert published is not None
        with closing(Connection(published, None)) as connection:
            shutil.rmtree(directory)
            assert Proxy(Pipe(for_proxy, for_client), config.load(), directory).run(connection) == 0
    os.close(for_client)
    with open(from_proxy, "rb") as answers:
        assert [json.loads(line)["id"] for line in answers] == [7]
    os.close(for_proxy)
