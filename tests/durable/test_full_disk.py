"""A full disk at the k-th statement: a call that raises has not happened, nothing is missing."""

from __future__ import annotations

import shutil

import pytest
from durable.faulty_calls import CALLS, WORLDS, content, outcomes, reopened, settled, start
from durable.full_disk import full_disk
from engine.injection import after_fault

import graphtide as gt

LATER = ("<ex:l>", "<ex:later>", "<ex:l>", "None")


@pytest.fixture(autouse=True)
def disk(monkeypatch):
    with full_disk(monkeypatch) as found:
        yield found


def tried(graph, call):
    """Whether a call has returned, and then the disk has taken it."""
    try:
        call(graph)
        graph.flush()
    except gt.GraphtideError as error:
        assert "disk is full" in str(error), error  # noqa: PT017
        return False
    return True


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_raised_has_not_happened(tmp_path, disk, world, name):
    """With "transaction": nor does it happen later, when there is room again."""
    expected = outcomes(tmp_path / "outcomes", "transaction", WORLDS[world], name)
    graph = start(tmp_path / "count", "transaction", WORLDS[world])
    disk.fill(1000)
    CALLS[name](graph)
    statements, disk.room = disk.statements, True
    graph.close()
    for begins in range(1, statements + 1):
        folder = tmp_path / f"store{begins}"
        graph = start(folder, "transaction", WORLDS[world])
        disk.fill(begins)
        with after_fault(f"statement {begins} of {statements}"):
            returned = tried(graph, CALLS[name])
            disk.room = True
            there = settled(content(graph))
            found = reopened(folder)
            try:
                graph.insert(*LATER[:3])
            except gt.GraphtideError as error:
                assert "open it again" in str(error)  # noqa: PT017
                assert world == "rules"  # a function was called, and that cannot be recorded
                graph.close()
                assert settled(found) == settled(reopened(folder)) == expected[-1]
                continue
            assert there == expected[-1] if returned else there in expected[:-1]
            assert settled(found) == there
            found = content(graph)
            assert reopened(folder) == found
            found["quads"].discard(LATER)
            assert settled(found) == there
            graph.close()
        shutil.rmtree(folder)


@pytest.mark.parametrize("durability", ["batch", "none"])
@pytest.mark.parametrize("name", CALLS)
def test_nothing_that_was_accepted_is_missing_when_there_is_room_again(
    tmp_path, disk, durability, name
):
    for world in WORLDS:
        expected = outcomes(tmp_path / world / "outcomes", durability, WORLDS[world], name)
        folder = tmp_path / world / "store"
        graph = start(folder, durability, WORLDS[world])
        disk.fill(1)
        with after_fault(f"in a world with {world}"):
            returned = tried(graph, CALLS[name])
            disk.room = True
            graph.flush()
            graph.insert(*LATER[:3])
            graph.flush()
            found = content(graph)
            assert reopened(folder) == found
            found["quads"].discard(LATER)
            assert settled(found) in expected[-1:] if returned else expected
            graph.close()
            found["quads"].add(LATER)
            assert reopened(folder) == found


@pytest.mark.parametrize("durability", ["transaction", "batch", "none"])
@pytest.mark.parametrize("watched", [False, True])
def test_only_what_returned_is_there(tmp_path, disk, durability, watched):
    """Some calls while the disk is full: none of those that raised is applied later."""
    graph = gt.LiveGraph.open(tmp_path / "store", durability=durability)
    heard = []
    if watched:
        graph.watch("SELECT ?a { ?a <ex:is> ?b }").on_delta(heard.append)
    graph.insert("<ex:0>", "<ex:is>", 0)
    graph.flush()
    returned = {0}
    disk.fill(1)
    for number in range(1, 3000):
        try:
            if number % 2:
                graph.insert(f"<ex:{number}>", "<ex:is>", number)
            else:
                with graph.transaction() as tx:
                    tx.insert(f"<ex:{number}>", "<ex:is>", number)
        except gt.GraphtideError as error:
            assert "disk is full" in str(error)  # noqa: PT017
            if len(returned) < number - 5:
                break
        else:
            returned.add(number)
    else:
        assert durability != "transaction"
    disk.room = True
    graph.insert("<ex:0>", "<ex:is>", 1)
    graph.flush()
    wanted = {f"<ex:{number}>" for number in returned}
    assert {str(quad[0]) for quad in graph.quads()} == wanted
    assert {subject for subject, *_ in reopened(tmp_path / "store")["quads"]} == wanted
    assert len(heard) == (len(returned) + 1) * watched
    graph.close()
