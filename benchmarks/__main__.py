"""`python -m benchmarks` lists the benchmarks, `python -m benchmarks NAME` runs one of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from inspect import getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.harness import BenchmarkError
from benchmarks.report import write_plot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Entry(NamedTuple):
    """The module of a benchmark, and what it measures."""

    module: str
    measures: str


BENCHMARKS: Final = {
    "table": Entry("table", "every kind of change: queries, patterns, rules, windows, the start"),
    "train": Entry("train.benchmark", "paper 1: the Train Benchmark, repaired round by round"),
    "layouts": Entry("train.protocol", "paper 1, Figures 10 and 11: layouts of two queries"),
    "rules": Entry("rules", "paper 2: AlarmConfirmation, a rule over facts and events"),
    "bgp": Entry("bgp", "paper 3: state and cost of patterns of four classes, by strategy"),
    "gesture": Entry("gesture", "paper 4, Table 3: gestures of bodies before a camera"),
    "sequence": Entry("sequence", "paper 4: the sequence a -> b -> c -> d of one key"),
    "windows": Entry("windows.benchmark", "paper 5, Table 1 and Figures 6 to 9: graph streams"),
    "planner": Entry("planner.benchmark", "the planner's choice beside every strategy"),
    "spark": Entry("spark.benchmark", "the pipeline on Spark, beside one that moves the rows"),
    "serve": Entry("serve", "a server with subscribers, beside clients that ask again"),
    "durable": Entry("durable", "what a store costs: to write it, to open it, until it is on disk"),
    "memory": Entry("memory", "bytes of a quad and of a term"),
}


def find_benchmark(name: str) -> Any:  # noqa: ANN401 - of any task and result
    """The benchmark of that name; its module is imported now."""
    return import_module(f"benchmarks.{BENCHMARKS[name].module}").BENCHMARK


def add_options(
    parser: argparse.ArgumentParser, tasks: Callable[..., object], small: Mapping[str, object]
) -> None:
    """An option for each parameter of a function; its type is that of the default."""
    for name, parameter in signature(tasks).parameters.items():
        default = parameter.default
        many = isinstance(default, tuple)
        kind = type(default[0] if many else default)
        option: dict[str, Any] = {"type": kind, "nargs": "+" if many else None}
        if kind is bool:
            option = {"action": argparse.BooleanOptionalAction}
        help_text = f"default: {default}"
        help_text += f"; small: {small[name]}" if name in small else ""
        parser.add_argument(
            f"--{name.replace('_', '-')}", default=argparse.SUPPRESS, help=help_text, **option
        )


def parse(name: str, words: Sequence[str]) -> tuple[dict[str, Any], argparse.Namespace]:
    """The options of a benchmark by name, and those that all benchmarks have.

    >>> parse("sequence", ["--small", "--keys", "7"])[0]
    {'events': 2000, 'keys': 7}
    """
    benchmark = find_benchmark(name)
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=f"{BENCHMARKS[name].measures}\n\n{getdoc(benchmark.tasks)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    common = parser.add_argument_group("options of all benchmarks")
    common.add_argument("--json", type=Path, metavar="FILE", help="write results and tables there")
    common.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure: .svg or .png")
    common.add_argument("--small", action="store_true", help="small sizes: seconds, no figures")
    add_options(parser, benchmark.tasks, benchmark.small)
    found = vars(parser.parse_args(words))
    given = {key: found.pop(key) for key in ("json", "plot", "small")}
    return ({**benchmark.small} if given["small"] else {}) | found, argparse.Namespace(**given)


def run(name: str, options: Mapping[str, Any], given: argparse.Namespace) -> None:
    """Run a benchmark: print its tables, write its results, draw its plot."""
    benchmark = find_benchmark(name)
    begun, load = datetime.now(UTC), os.getloadavg()[0]
    results = benchmark.run(
        benchmark.tasks(**options), lambda step: print(step, file=sys.stderr, flush=True)
    )
    report = benchmark.report(results)
    for table in report.tables:
        print("\n".join(table.lines()), end="\n\n")
    for note in report.notes:
        print(note)
    if given.json is not None:
        whole = {
            "benchmark": name,
            "options": options,
            "begun": begun.isoformat(timespec="seconds"),
            "load": load,
            "cores": os.cpu_count(),
            "results": [asdict(result) for result in results],
            "tables": {table.title: table.rows for table in report.tables},
        }
        given.json.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    if given.plot is not None:
        if report.plot is None:
            raise BenchmarkError("there is no plot of this")
        write_plot(report.plot, given.plot)


def main(words: Sequence[str]) -> int:
    """List the benchmarks, or run one."""
    if not words or words[0] not in BENCHMARKS:
        for name, entry in BENCHMARKS.items():
            print(f"{name:9} {entry.measures}")
        print("\npython -m benchmarks NAME --help has the options; make bench-NAME runs it.")
        return 0 if not words else 2
    name, *rest = words
    try:
        run(name, *parse(name, rest))
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
