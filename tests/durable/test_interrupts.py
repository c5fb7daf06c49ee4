"""Ctrl-C anywhere inside a call on a durable graph: the store opens, and has what was acknowledged.

KeyboardInterrupt is raised at the k-th place of a call where a signal can be handled, for all k, or
a sample of them; GRAPHTIDE_INTERRUPTS=all raises it at all of them.
"""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest
from durable.faulty_calls import CALLS, SAMPLE, WORLDS, content, outcomes, reopened, settled, start
from engine.injection import after_fault, fault_at, places

import graphtide as gt

MORE = ("<ex:m>", "<ex:more>", "<ex:m>", "None")


def interrupted_again(graph, number):
    """Interrupt the next call, too: it may be making what the first one has left."""
    with (
        suppress(KeyboardInterrupt, gt.GraphtideError),
        fault_at(1 + number * 7 % 200, KeyboardInterrupt, returns=True),
    ):
        graph.insert(*MORE[:3])


def check(tmp_path, durability, world, name, most):
    call, expected = CALLS[name], outcomes(tmp_path / "outcomes", durability, world, name)
    graph = start(tmp_path / "count", durability, world)
    with fault_at(0, returns=True) as counted:
        call(graph)
    graph.close()
    for number in places(counted.calls, most):
        folder = tmp_path / f"store{number}"
        graph = start(folder, durability, world)
        fault = None
        try:
            with fault_at(number, KeyboardInterrupt, returns=True):
                call(graph)
        except KeyboardInterrupt as raised:
            fault = str(raised)
        with after_fault(f"{number}: {fault}"):
            if durability == "transaction":
                found = reopened(folder)
                assert settled(found) in expected, ("crashed", found, expected)
            if number % 2:
                interrupted_again(graph, number)
            later = ("<ex:l>", "<ex:later>", "<ex:l>", "None")
            try:
                graph.insert(*later[:3])
                graph.flush()
            except gt.GraphtideError as error:
                assert "open it again" in str(error)  # noqa: PT017
                graph.close()
                found = reopened(folder)
            else:
                found = reopened(folder)
                assert found == content(graph)
                graph.checkpoint()
                assert reopened(folder) == found
                graph.close()
                assert reopened(folder) == found
                assert later in found["quads"]
                found["quads"].discard(later)
            found["quads"].discard(MORE)
            assert settled(found) in expected, ("closed", found, expected)
        shutil.rmtree(folder)


@pytest.mark.parametrize("durability", ["transaction", "batch"])
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_loses_nothing(tmp_path, durability, world, name):
    check(tmp_path, durability, WORLDS[world], name, SAMPLE)
