"""A program with rules and patterns, killed: what fires fires once, what is called is called."""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
from spark.faults.assault import PATIENCE, Assault
from spark.stages.program_runs import PREFIX, change, fired, transactions
from spark.stages.program_runs import in_process as run_in_process
from spark.stages.random_programs import random_rows

from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import write_changes

PROGRAM = (
    PREFIX
    + """
QUERY Met AS SELECT ?x ?z { ?x :met ?z }
QUERY Back AS SELECT ?z ?x { ?z :metBy ?x . ?x :met ?z }
EVENT A(?x, ?y) AS { ?x :a ?y }
EVENT B(?x, ?y) AS { ?x :b ?y }
PATTERN Alone(?x, ?y) AS A(?x, ?y) -> NOT B(?x, _) WITHIN 4s
PATTERN Twice(?x) AS (A(?x, _){2}) WITHIN 6s
RULE Both WHEN FACT { ?x :p ?f } EVENT a = A(?x, ?y) EVENT b = B(?x, ?z) AFTER[0,6] a
  THEN INSERT { ?x :met ?z } ; CALL f("both", ?x, ?z)
RULE Told WHEN EVENT Alone(?x, ?y) THEN CALL f("told", ?x, ?y)
RULE Known ON APPEAR OF Met THEN INSERT { ?z :metBy ?x } ; CALL f("known", ?x, ?z)
"""
)
"""`Both` feeds `Known`, which feeds `Back`. Nothing else depends on what they insert, so that all
but the times of `Known` is the same however the stream is cut."""

KINDS = {"Both": ("both", "x", "z"), "Told": ("told", "x", "y"), "Known": ("known", "x", "z")}


class RuleAssault(Assault):
    """A program with rules, started again; its driver can be asked to kill itself."""

    def start(self, rows_per_batch):
        """Begin a life."""
        self.lives += 1
        path = self.folder / f"job-{self.lives}.json"
        settings = {"spark.local.dir": str(self.folder / "scratch")}
        more = {"rows_per_batch": rows_per_batch, "settings": settings}
        path.write_text(json.dumps(self.job | more), encoding="utf-8")
        job = Path(__file__).with_name("react_job.py")
        self.launch([sys.executable, str(job), str(path)])

    def kill_at(self, moment):
        """Let the driver be killed when it comes to a moment."""
        asked = Path(self.job["notes"], f"die-at-{moment}")
        asked.touch()
        assert self.process.wait(PATIENCE) == -9, self.log()
        asked.unlink()
        self.count("driver")
        self.clear()


def stream(seed, transactions):
    """Rows, and the time of the last one before the end."""
    rows, last = random_rows(Random(seed), transactions)
    rows.append(change(last + 20, 10**6, 1, "the", "very", "end"))
    return rows, last


def make_assault(folder, rows, seed, *, per_file=10):
    """The job, and its input as change logs in which an event is a graph of its stream's name."""
    for name in ("input", "notes"):
        (folder / name).mkdir()
    parts = [part for _, part in transactions(rows)]
    for number in range(0, len(parts), per_file):
        lines = [
            (*row[:6], row[7] and f"<{row[7]}>")
            for part in parts[number : number + per_file]
            for row in part
        ]
        write_changes(ChangeBatch.of(lines), folder / "input" / f"{number:05}.rdfp")
    paths = {name: str(folder / name) for name in ("input", "out", "notes", "calls", "home")}
    job = {"master": "local[2,4]", "partitions": 2, "program": PROGRAM, **paths}
    job |= {"streams": ["http://e/s", "http://e/t"]}
    job |= {"checkpoint": str(folder / "home" / "stream")}
    return RuleAssault(folder, job, Random(seed))


def written(folder, name):
    files = sorted((folder / "out" / name).glob("*.parquet"))
    return [row for f in files for row in pq.read_table(f).to_pylist(maps_as_pydicts="strict")]


def timeless(firings):
    """Firings by rule, time, values and times of events; but of `Known` only the values."""
    found = Counter()
    for (rule, time, values, ends), count in firings.items():
        found[(rule, values) if rule == "Known" else (rule, time, values, ends)] += count
    return found


def answer(folder, name):
    """What the deltas of a query add up to."""
    found = Counter()
    for row in written(folder, name):
        found[row["x"], row["z"]] += row["diff"]
    return +found


def assert_equal(folder, rows, last):
    """Compare the whole output with one process; how many calls were made again."""
    alone = run_in_process(PROGRAM, rows, last + 20)
    assert written(folder, "quarantine") == []
    assert_firings(folder, alone)
    assert_complex_events(folder, alone)
    assert_graph(folder, alone)
    return assert_calls(folder)


def assert_firings(folder, alone):
    firings = written(folder, "firings")
    found = Counter(
        (
            r["rule"],
            r["time"],
            tuple(r["values"][name] for name in sorted(r["values"])),
            tuple(r["events"].values()),
        )
        for r in firings
    )
    expected = timeless(fired(alone))
    assert min(Counter(rule for rule, *_ in expected.elements()).values()) > 5
    assert len({rule for rule, *_ in expected}) == len(KINDS)
    assert not expected - timeless(found), "lost"
    assert not timeless(found) - expected, "double, or never true"
    assert len({row["id"] for row in firings}) == len(firings)


def assert_complex_events(folder, alone):
    for name in ("Alone", "Twice"):
        expected = Counter(
            (each.time, *map(str, each.values.values())) for each in alone.matches(name)
        )
        parameters = ("x", "y") if name == "Alone" else ("x",)
        rows = written(folder, name)
        found = Counter((row["time"], *(row[p] for p in parameters)) for row in rows)
        assert found == expected and len(expected) > 5, name


def assert_graph(folder, alone):
    for name in ("Met", "Back"):
        table = alone.queries[name].table(terms=True).to_pylist()
        expected = Counter((str(row["x"]), str(row["z"])) for row in table)
        assert answer(folder, name) == expected and len(expected) > 5, name


def assert_calls(folder):
    """At least one of each firing, and more only with the same arguments; how many more."""
    lines = (folder / "calls").read_text(encoding="utf-8").splitlines()
    calls = defaultdict(list)
    for line in lines:
        firing, *given = json.loads(line)
        calls[firing].append(given)
    expected = {}
    for row in written(folder, "firings"):
        kind, *names = KINDS[row["rule"]]
        expected[row["id"]] = [f'"{kind}"', *(row["values"][name] for name in names)]
    assert {firing: given[0] for firing, given in calls.items()} == expected
    assert all(given == each[0] for each in calls.values() for given in each)
    return len(lines) - len(calls)
