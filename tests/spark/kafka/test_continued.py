"""A run over topics that is rescaled and evolved: the new stream starts at the old offsets."""

from __future__ import annotations

from random import Random

import pytest
from spark.faults.stream import TWO_STAGES, in_process
from spark.kafka.topics import ends, json_records, new_topic, produce, railway

from graphtide.datasets.railway import PREFIX
from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark import evolve, kafka_changes, read_output, rescale, run

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def program_of(texts):
    queries = (f"QUERY {name} AS {text[text.index('SELECT') :]}" for name, text in texts.items())
    return Program.parse("\n".join([PREFIX, *queries]))


def output(folder, texts):
    """The deltas of all queries, as `in_process` gives them, in a list."""
    return sorted(
        (name, row.pop("time"), row.pop("tx"), row.pop("diff"), sorted(row.items()))
        for name in texts
        for row in read_output(folder / "out", name).to_pylist()
    )


def expected_output(expected):
    return sorted((*delta, sorted(row)) for *delta, row in expected.elements())


def test_rescaled_and_evolved(spark, broker, tmp_path):
    batches, expected = railway(16, seed=5)
    topic, checkpoint = new_topic(spark, broker, "in-rescaled", 2), tmp_path / "checkpoint"
    random = Random(6)
    records = json_records(batches, lambda number: random.randrange(2))
    parts = [records[: len(records) // 2], records[len(records) // 2 :], ends(2)]

    def run_on(texts=TWO_STAGES, known=checkpoint, **options):
        changes = kafka_changes(
            spark, broker.servers, topic, records_per_batch=150, checkpoint=known
        )
        job = run(
            spark, program_of(texts), changes=changes, out=tmp_path / "out", checkpoint=checkpoint,
            shards=2, once=True, **options,
        )  # fmt: skip
        return [status.batch for status in job.statuses()]

    produce(spark, broker, topic, parts[0])
    before = run_on(partitions=2)
    assert len(before) > 1

    # A micro-batch that was planned has to be completed first: its end cannot be given to Kafka.
    commit = checkpoint / "stream" / "commits" / str(before[-1])
    text = commit.read_bytes()
    for path in commit.parent.glob(f"*{commit.name}*"):
        path.unlink()
    with pytest.raises(GraphtideError, match="was not completed"):
        rescale(spark, checkpoint, partitions=3)
    commit.write_bytes(text)

    done = rescale(spark, checkpoint, partitions=3)
    assert done.batch == before[-1] + 1
    with pytest.raises(GraphtideError, match="the DataFrame does not start there") as caught:
        run_on(known=None)
    assert "kafka_changes(…, checkpoint=" in caught.value.hint
    produce(spark, broker, topic, parts[1])
    after = run_on()
    assert after[0] == done.batch

    new = {"Monitored": f"{PREFIX}SELECT ?sw ?sensor {{ ?sw a :Switch ; :monitoredBy ?sensor }}"}
    evolve(spark, checkpoint, program_of(TWO_STAGES | new))
    produce(spark, broker, topic, parts[2])
    run_on(TWO_STAGES | new)
    assert output(tmp_path, TWO_STAGES) == expected_output(expected)
    totals = [sum_of(output(tmp_path, new)), sum_of(expected_output(in_process(new, batches)))]
    assert totals[0] and totals[0] == totals[1]


def sum_of(deltas):
    found = {}
    for _, _, _, diff, row in deltas:
        found[str(row)] = found.get(str(row), 0) + diff
    return {row: count for row, count in found.items() if count}


def test_other_sources_cannot_be_told_where_to_go_on(spark, tmp_path):
    schema = "time long, tx long, diff int, s string, p string, o string"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(
        '{"time": 1, "tx": 0, "diff": 1, "s": "<ex:a>", "p": "<ex:p>", "o": "<ex:b>"}\n'
    )
    changes = spark.readStream.schema(schema).json(str(tmp_path / "in"))
    program = Program.parse("QUERY Q AS SELECT ?a { ?a <ex:p> ?b }")
    places = {"out": tmp_path / "out", "checkpoint": tmp_path / "checkpoint"}
    for _ in run(spark, program, changes=changes, **places, partitions=2, once=True).statuses():
        pass
    with pytest.raises(GraphtideError, match="whose source cannot be told where to go on"):
        rescale(spark, tmp_path / "checkpoint", partitions=3)
    with pytest.raises(GraphtideError, match="no other source can be told"):
        run(spark, program, changes=changes, **places, partitions=2, hubs="auto")
