"""Compile the loops before they are needed, in as many processes as there are cores.

When the package is built or set up, the loops are compiled that README, demo and tutorial use, so
that no first answer waits for the compiler (`scripts/machine_code.py`). `graphtide warm` compiles
all. This module and those that have loops import Numba and NumPy, and no other package.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from graphtide.jit import LOOPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DEMO: Final = (
    "kernel.search.loops.apply_changes",
    "kernel.tokens.plain.tokens_plain_step",
    "rules.kernel.join.take_hits",
    "rdf.kernels.terms.add_plain",
    "kernel.joins.join_step",
    "kernel.joins.semijoin_step",
    "kernel.counts.distinct_step",
    "kernel.counts.consolidate_step",
    "rdf.kernels.terms.take_rows",
    "rules.kernel.types.find_hits",
    "rdf.kernels.lines.split_lines",
    "rules.kernel.facts.change_facts",
    "kernel.search.loops.chain_rows",
    "rules.kernel.fact_numbers.fact_numbers",
    "rdf.kernels.packing.copy_texts",
    "kernel.values.compare_columns",
    "kernel.tokens.step.tokens_listed",
    "kernel.rowtable.rehash",
    "rdf.kernels.texts.check_texts",
    "kernel.search.loops.find_rows",
    "rdf.kernels.terms.find_one",
    "kernel.tokens.step.tokens_used",
    "kernel.rowtable.copy_live",
    "spark.partition.hashing.hash_texts",
    "rdf.kernels.lines.copy_spans",
    "rdf.kernels.packing.text_sizes",
    "rdf.kernels.packing.rehash",
    "rdf.kernels.packing.mark_ids",
    "rules.kernel.facts.fact_number",
)
"""The loops of the README's first program and of the demo, the longest first."""

FIRST: Final = (
    *DEMO,
    "kernel.groups.group_step",
    "kernel.jointree.step.tree_step",
    "kernel.search.loops.evaluate_rows",
    "kernel.reach.step.reach_step",
    "kernel.reach.step.begin_change",
    "kernel.reach.forest.shrink",
    "kernel.reach.step.change_edge",
    "kernel.groups.write_rows",
    "kernel.reach.forest.grow",
    "kernel.search.bulk.link_rows",
    "rdf.kernels.terms.take_numbers",
    "kernel.reach.forest.list_trees",
    "kernel.values.count_degrees",
    "rdf.kernels.numerals.write_number",
    "kernel.search.bulk.count_links",
    "kernel.jointree.groups.write_rows",
    "kernel.search.loops.count_quads",
    "kernel.values.sort_by_predicate",
    "kernel.reach.step.settle",
)
"""The loops that are compiled when the package is built: of README, demo and tutorial."""

LONGEST: Final = (
    "kernel.search.loops.apply_changes",
    "kernel.groups.group_step",
    "kernel.instances.step.instances_step",
    "kernel.tokens.step.tokens_step",
    "kernel.jointree.step.tree_step",
)
"""The other loops that take longest: they are begun first, so that all processes end together."""


def compile_loops(names: Iterable[str], say: Callable[[str], None]) -> None:
    """Compile loops, and say after each how far it is."""
    begin = perf_counter()
    wanted = list(names)
    processes = max(1, min(len(wanted), cpu_count() or 1))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        parts = {pool.submit(compile_loop, name): name for name in wanted}
        for done, part in enumerate(as_completed(parts), 1):
            part.result()
            seconds = perf_counter() - begin
            say(f"{done} of {len(wanted)} loops: {parts[part]}, {seconds:.0f} s")


def compile_loop(name: str) -> None:
    """Compile one loop in this process, unless its machine code is stored."""
    import_module(f"graphtide.{name.rpartition('.')[0]}")
    LOOPS[name].prepare()


def all_loops() -> list[str]:
    """The names of all loops of the package, those first that take longest."""
    package, modules = Path(__file__).parent, set()
    for path in sorted(package.rglob("*.py")):
        if "\n@compiled\n" in path.read_text(encoding="utf-8"):
            module = ".".join(path.relative_to(package).with_suffix("").parts)
            import_module(f"graphtide.{module}")
            modules.add(module)
    names = (name for name in LOOPS if name.rpartition(".")[0] in modules)
    return sorted(names, key=lambda name: name not in LONGEST)


def to_stderr(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is what it is for
