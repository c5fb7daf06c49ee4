"""The options of `graphtide run` for Kafka; runs with a broker are in `tests/spark/kafka`."""

import pytest


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ((), "give either --changes or --kafka"),
        (("--changes", "log.rdfp", "--kafka", "h:1"), "give either --changes or --kafka"),
        (("--changes", "log.rdfp", "--in-topic", "t"), "options for topics need --kafka"),
        (("--kafka", "h:1"), "--kafka needs --in-topic"),
        (("--record-format", "debezium"), "--tables is for --record-format debezium"),
        (("--tables", "t.json"), "--tables is for --record-format debezium"),
        (
            ("--firings-topic", "f"),
            "--rejected-topic, --firings-topic and --tombstones need --out-topic",
        ),
        (("--idle", "-1"), 'invalid --idle "-1"'),
        (("--kafka-option", "x"), 'invalid --kafka-option "x": write NAME=VALUE'),
        (("--engine", "process"), "--kafka is for --engine spark"),
    ],
)
def test_options_that_do_not_go_together(files, run, tokens, message):
    if tokens and tokens[0] not in ("--changes", "--kafka"):
        tokens = ("--kafka", "h:1", "--in-topic", "t", *tokens)
    ran = run("run", "all.rq", *tokens)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
