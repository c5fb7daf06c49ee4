"""`graphtide run` from an object store into it, killed in the middle of micro-batches."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from spark.faults.assault import RunAssault
from spark.faults.stream import TWO_STAGES, in_process
from support.object_store import BUCKET, object_store

from graphtide.datasets.railway import PREFIX, change_stream
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import read_output
from graphtide.spark.files import Location

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

WITH_PARTS = """
from functools import partial
from graphtide.cli.main import main
from graphtide.spark.driver import run
run.OutputSpec = partial(run.OutputSpec, inline_bytes=0)
raise SystemExit(main())
"""
"""The command line, with all output written by the partitions."""


def test_kills_on_an_object_store(tmp_path, monkeypatch):
    stream = list(change_stream(60, seed=6, routes=12))
    with object_store() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        logs, out = f"s3a://{BUCKET}/logs", f"s3a://{BUCKET}/out"
        for number, batch in enumerate(stream):
            path = tmp_path / f"{number:03}.rdfp"
            write_changes(batch, path)
            (Location.of(logs) / path.name).write_bytes(path.read_bytes())
        queries = [f"QUERY {name} AS {text}\n" for name, text in TWO_STAGES.items()]
        program = PREFIX + "".join(queries).replace(PREFIX, "")
        (tmp_path / "rail.tide").write_text(program, encoding="utf-8")
        job = {"checkpoint": str(tmp_path / "checkpoint" / "stream")}
        job |= {"options": {"--changes": logs, "--out": out}, "code": ("-c", WITH_PARTS)}
        assault = RunAssault(tmp_path, job, Random(8))
        try:
            assault.start(9)
            assault.kill("worker")
            assault.kill("driver")
            assault.start(20)
            assault.finish()
        finally:
            assault.clear()
        assert assault.kills == {"worker": 1, "driver": 1}
        assert "resumes after micro-batch" in assault.log()
        found = Counter(
            (name, row.pop("time"), row.pop("tx"), row.pop("diff"), frozenset(row.items()))
            for name in TWO_STAGES
            for row in read_output(out, name).to_pylist()
        )
        parts = [
            inner.name
            for entry in (Location.of(out) / next(iter(TWO_STAGES))).entries()
            for inner in (Location.of(out) / next(iter(TWO_STAGES)) / entry.name).entries()
        ]
    assert parts and all(name.startswith("part-") for name in parts)
    expected = in_process(TWO_STAGES, stream)
    assert len(expected) > 5
    assert not expected - found, "lost"
    assert not found - expected, "double, or never true"
