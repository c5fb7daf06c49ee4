"""The option of `graphtide run` for Kafka; runs with a broker are in `tests/spark/kafka`."""

from pathlib import Path

import pytest

from graphtide.cli.options import KafkaTopics

GIVEN = ("servers=h:1", "in=t")


def test_all_names():
    read = KafkaTopics.read(
        (
            *GIVEN, "in=u", "format=debezium", "tables=t.json", "idle=3", "out=o", "rejected=r",
            "firings=f", "tombstones=yes", "kafka.sasl.jaas.config=a=b", "failOnDataLoss=false",
        )
    )  # fmt: skip
    settings = {"kafka.sasl.jaas.config": "a=b", "failOnDataLoss": "false"}
    assert read == KafkaTopics(
        "h:1", ("t", "u"), "debezium", Path("t.json"), 3, "o", "r", "f",
        tombstones=True, settings=settings,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((), "give either --changes or --kafka"),
        (("--changes", "log.rdfp", "--kafka", "servers=h:1"), "give either --changes or --kafka"),
        (("--kafka", "servers=h:1"), "--kafka needs servers and a topic of changes"),
        (("--kafka", "in=t"), "--kafka needs servers and a topic of changes"),
        (("format=debezium",), "tables=FILE is for format=debezium, which needs it"),
        (("tables=t.json",), "tables=FILE is for format=debezium, which needs it"),
        (("firings=f",), "--kafka rejected, firings and tombstones need out=TOPIC"),
        (("idle=-1",), 'invalid --kafka "idle=-1": give a whole number of ticks'),
        (("format=xml",), 'invalid --kafka "format=xml": choose from json, rdf-patch, debezium'),
        (("servers=g:1",), 'invalid --kafka "servers=g:1": give servers once'),
        (("topic=t",), 'invalid --kafka "topic=t": write NAME=VALUE; the names are servers, in, f'),
        (("in",), 'invalid --kafka "in": write NAME=VALUE'),
        (("--engine", "process"), "--kafka is for --engine spark"),
    ],
)
def test_options_that_do_not_go_together(files, run, tokens, message):
    if tokens and tokens[0] not in ("--changes", "--kafka"):
        option = [] if tokens[0] == "--engine" else ["--kafka"]
        tokens = ("--kafka", GIVEN[0], "--kafka", GIVEN[1], *option, *tokens)
    ran = run("run", "all.rq", *tokens)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
