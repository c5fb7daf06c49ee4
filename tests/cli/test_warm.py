"""`graphtide warm` compiles what all others need."""

import pytest

from graphtide import warm
from graphtide.cli import demo
from graphtide.kernel import JIT

needs_compiler = pytest.mark.skipif(not JIT, reason="there is no compiler")


@needs_compiler
@pytest.mark.slow
def test_every_part_is_compiled_in_a_process_of_its_own(run):
    ran = run("warm", "--no-spark")
    assert ran.code == 0
    lines = ran.err.splitlines()
    assert [line.split(":")[0] for line in lines if " of " in line] == [
        f"{number} of {len(warm.PARTS)}" for number in range(1, len(warm.PARTS) + 1)
    ]
    assert all(any(part in line for line in lines) for part in warm.PARTS)


@needs_compiler
@pytest.mark.slow
def test_nothing_is_left_to_compile_for_queries_windows_rules_and_files():
    """The loops that Python calls have machine code after that, in this process."""
    from graphtide.kernel import (
        counts,
        groups,
        instances,
        joins,
        reach,
        search,
        sorted_rows,
        tokens,
    )
    from graphtide.rdf.kernels import lines, packing, terms, texts
    from graphtide.rules.kernel import absence, facts, join, memory, types

    for part in warm.PARTS:
        warm.run_part(part)
    loops = [
        search.loops.apply_changes, search.quadstream.match_changes, joins.join_step,
        joins.semijoin_step, counts.consolidate_step, counts.distinct_step, groups.group_step,
        sorted_rows.sorted_step, sorted_rows.read_after,
        reach.step.reach_step, tokens.step.tokens_step, join.take_hits, absence.take_batch,
        types.find_hits, lines.split_lines, texts.check_texts,
        # what runs when tables grow, and when something is dropped from them:
        tokens.step.tokens_sweep, memory.refill, absence.refill_matches, facts.refill_facts,
        terms.add_plain, packing.mark_ids, packing.pack_texts, search.parallel.search_changes,
        instances.step.instances_step,
    ]  # fmt: skip
    assert [loop.__name__ for loop in loops if not loop.signatures] == []


def test_spark_is_warmed_too(run, monkeypatch):
    calls = []
    monkeypatch.setattr(warm, "PARTS", {})
    monkeypatch.setattr("graphtide.spark.warm_up.main", lambda *options: calls.append(options) or 0)
    assert run("warm").code == 0
    assert calls == ([("--once",)] if JIT else [])


def test_without_a_compiler_it_says_so(run, monkeypatch):
    monkeypatch.setattr(demo, "JIT", False)
    ran = run("warm")
    assert ran.code == 0 and "nothing to compile" in ran.err
