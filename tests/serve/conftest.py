"""Clients of servers that run in threads."""

from __future__ import annotations

import pytest
from serve.running_server import running


@pytest.fixture
def serve():
    return running


@pytest.fixture
def client():
    with running() as found:
        yield found
