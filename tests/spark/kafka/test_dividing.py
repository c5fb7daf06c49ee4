"""A run over topics that finds its hubs: exactly once, also if it is killed in the switch."""

from __future__ import annotations

import pytest
from spark.driver.skew import (
    QUADS,
    STAR,
    KilledError,
    expected_deltas,
    killed_in_the_switch,
    skewed,
    written_deltas,
)
from spark.kafka.topics import ends, json_records, new_topic, produce

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark import kafka_changes, run
from graphtide.spark.driver import dividing
from graphtide.spark.driver.options import read_fingerprint
from graphtide.spark.files import Location

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_a_hub_of_a_topic_is_divided_in_the_stream(spark, broker, tmp_path, monkeypatch):
    monkeypatch.setattr(dividing, "FIRST_LOOK", 2 * QUADS)
    stream, checkpoint = skewed(9), tmp_path / "checkpoint"
    owners = [number % 2 for number, batch in enumerate(stream) for _ in range(len(batch))]
    topic = new_topic(spark, broker, "in-divided", 2)
    produce(spark, broker, topic, json_records(stream, owners.__getitem__) + ends(2))

    def changes():
        return kafka_changes(
            spark, broker.servers, topic, records_per_batch=QUADS, checkpoint=checkpoint
        )

    def run_on(changes):
        job = run(
            spark, Program.parse(f"QUERY Star AS {STAR}"), changes=changes, out=tmp_path / "out",
            checkpoint=checkpoint, partitions=4, hubs="auto", shards=2, once=True,
        )  # fmt: skip
        return [status.batch for status in job.statuses()]

    def hubs():
        return [term for term, _ in read_fingerprint(Location.of(checkpoint)).hubs]

    with pytest.raises(
        GraphtideError, match="a DataFrame cannot be made again with other offsets"
    ) as caught:
        run_on(changes())
    assert "changes=lambda: kafka_changes(" in caught.value.hint

    with killed_in_the_switch(monkeypatch) as found, pytest.raises(KilledError):
        run_on(changes)
    assert [term for term, _ in found[0]] == ["<ex:hub>"] and hubs() == []

    numbers = run_on(changes)
    assert numbers == list(range(numbers[0], numbers[-1] + 1)), "numbered on"
    assert hubs() == ["<ex:hub>"]
    assert written_deltas(tmp_path / "out") == expected_deltas(stream)
