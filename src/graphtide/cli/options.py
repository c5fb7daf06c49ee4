"""Options that several commands have: one name, one type and one help text each.

An option whose values depend on the command (`--format`, `--out`) begins its help with the same
sentence everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from cyclopts import CoercionError, CycloptsError, Group, Parameter

from graphtide.errors import DataError, GraphtideError
from graphtide.lang.sparql.prefixes import Prefixes
from graphtide.limits import NAMES, Limits
from graphtide.plan.patterns import Strategy
from graphtide.rdf.changes import OnError

_KINDS: Final[dict[type | None, str]] = {int: "give a whole number", float: "give a number"}

Engine = Literal["spark", "process"]

CLOCK: Final = Group("Time and events", sort_key=1)
SPARK: Final = Group("On Spark", sort_key=2)
BOUNDS: Final = Group("Limits and services", sort_key=3)
EVERY: Final = Group("Every command", sort_key=4)
"""Groups of options in the help, after those that most users need."""

_DEFAULTS: Final = ", ".join(f"{name} {value:,}" for name, value in Limits().to_json().items())

FORMAT_HELP: Final = "Output format."
OUT_HELP: Final = "Where to write the output."
JSON_HELP: Final = "Print JSON instead of text."

DataOption = Annotated[
    list[Path] | None,
    Parameter(
        name="--data",
        help="RDF to load first: Turtle, N-Triples, N-Quads, TriG, RDF/XML, or a change log to "
        "apply. It is read, never written. Repeat the option for several files.",
    ),
]
ChangesOption = Annotated[
    Path | None,
    Parameter(
        name="--changes",
        allow_leading_hyphen=True,
        help="Changes to apply after --data: a change log (.rdfp, .parquet, .arrow), or RDF, whose "
        "triples are all inserted. The name `-` stands for RDF Patch from standard input. `run` "
        "also takes a directory of change logs, read in the order of their names, and URIs such as "
        "s3a://bucket/logs.",
    ),
]
FollowOption = Annotated[
    bool,
    Parameter(
        name="--follow",
        help="Do not end with the last change: wait for more, and apply them as they are written.",
    ),
]
PageOption = Annotated[
    bool,
    Parameter(
        name="--page",
        help="Show everything on a web page meanwhile, at this machine's port 8765 or, if that is "
        "taken, another one. Ctrl-C ends it.",
    ),
]
StoreOption = Annotated[
    Path | None,
    Parameter(
        name="--store",
        help="Directory of a durable graph, which is made if need be: changes go into it, and what "
        "was in it, queries and programs too, is there again. `query`, `why` and `watch --follow` "
        "without --changes only read it, also beside a process that writes.",
    ),
]
JsonOption = Annotated[bool, Parameter(name="--json", help=f"{JSON_HELP} One object per line.")]
StrategyOption = Annotated[
    Strategy | None,
    Parameter(
        name="--strategy", help="How graph patterns are matched; by default the planner chooses."
    ),
]
OnErrorOption = Annotated[
    OnError,
    Parameter(
        name="--on-error",
        help="What to do about changes that cannot be parsed: raise stops with an error, skip "
        "leaves them out and lists them at the end (run: in the quarantine, too).",
    ),
]
TickOption = Annotated[
    int,
    Parameter(
        name="--tick-ms",
        group=CLOCK,
        help="Milliseconds per tick, the unit of time. Durations in seconds, minutes and hours are "
        "converted to ticks.",
    ),
]
UntilOption = Annotated[
    int | None,
    Parameter(
        name="--until",
        group=CLOCK,
        help="Advance the clock to this time after the last change, so that windows close and "
        "timers expire; by default to the tick after it.",
    ),
]
ENGINE_HELP: Final = (
    "Where to run: on Spark, or in this process. Without Java or PySpark, spark falls back to "
    "process."
)
EngineOption = Annotated[Engine, Parameter(name="--engine", help=ENGINE_HELP)]
SeedOption = Annotated[
    int,
    Parameter(name="--seed", help="Seed of the random numbers; equal seeds give equal results."),
]
PartitionsOption = Annotated[
    int | None,
    Parameter(
        name="--partitions",
        group=SPARK,
        help="Number of partitions of the Spark job; by default one per core of this machine.",
    ),
]
DisableOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--disable",
        help="A group of rules (RULE name IN group) that does not run. Repeat the option for "
        "several. A run on Spark that is stopped goes on with the same groups.",
    ),
]
PrefixesOption = Annotated[
    Prefixes,
    Parameter(
        name="--prefixes",
        group=EVERY,
        help="With common, queries and programs need not declare rdf, rdfs, owl, xsd, foaf, skos "
        "and other well-known prefixes.",
    ),
]
ServiceAllowOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--service-allow",
        group=BOUNDS,
        help="An endpoint that SERVICE may ask; with * at its end, all that begin so. Repeat the "
        "option for several. By default none is asked.",
    ),
]
ServiceRefreshOption = Annotated[
    float | None,
    Parameter(
        name="--service-refresh",
        group=BOUNDS,
        help="Ask the endpoints of SERVICE again every so many seconds; by default only once.",
    ),
]
VerboseOption = Annotated[
    int,
    Parameter(
        name=["--verbose", "-v"],
        group=EVERY,
        count=True,
        show_default=False,
        help="Say on standard error what happens, such as loops that are "
        "compiled, plans that change, late and rejected input, checkpoints. -vv says more.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LimitOptions:
    """The options that set limits: each as NAME=VALUE, or a file of such lines.

    >>> LimitOptions(("digits=50", "query_seconds=none")).limits().query_seconds is None
    True
    """

    given: Annotated[
        tuple[str, ...],
        Parameter(
            name="--limit",
            group=BOUNDS,
            help="A limit as NAME=VALUE, such as query_seconds=10; VALUE none is no limit. Repeat "
            f"the option for several. Names, and what they are by default: {_DEFAULTS}.",
        ),
    ] = ()
    file: Annotated[
        Path | None,
        Parameter(
            name="--limits",
            group=BOUNDS,
            help="A file of limits, NAME=VALUE in each line; what follows a # is a comment. "
            "--limit takes precedence.",
        ),
    ] = None

    def limits(self) -> Limits:
        """The limits: those given, and the defaults."""
        found: dict[str, Any] = {}
        for number, line in enumerate(self._lines(), 1):
            if text := line.partition("#")[0].strip():
                found |= _limit(f"line {number} of --limits {self.file}", text)
        for text in self.given:
            found |= _limit("--limit", text)
        return Limits(**found)

    def _lines(self) -> list[str]:
        """The lines of the file."""
        if self.file is None:
            return []
        try:
            return self.file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot be read: {error}", source=str(self.file)) from None


DEFAULT_LIMITS: Final = LimitOptions()


def _limit(where: str, text: str) -> dict[str, float | None]:
    """Read NAME=VALUE, the name and the value of a limit."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not sign or name not in NAMES:
        example = "write NAME=VALUE, such as query_seconds=10 or digits=none"
        raise invalid(where, text, f"{example}; the names are {', '.join(NAMES)}")
    if value == "none":
        return {name: None}
    kind: type[float] = float if name.endswith("_seconds") else int
    with suppress(ValueError):
        if 0 < (number := kind(value)) < inf:
            return {name: number}
    thing = "number" if kind is float else "whole number"
    raise invalid(where, text, f"{name} is a {thing} above 0, or none for no limit")


def invalid(option: str, value: object, allowed: str) -> GraphtideError:
    """The error for a value that an option does not take, with what it takes.

    >>> str(invalid("--trigger", "5x", "write 500ms, 1s or 2m"))
    'invalid --trigger "5x": write 500ms, 1s or 2m'
    """
    return GraphtideError(f'invalid {option} "{value}": {allowed}')


def at_least(option: str, value: float | None, least: int) -> None:
    """Reject a number below the least that an option takes.

    >>> at_least("--rows", 0, 1)
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: invalid --rows "0": give 1 or more
    """
    if value is not None and value < least:
        raise invalid(option, value, f"give {least} or more")


# --- Spark ---

SPARK_NAMES: Final = ("master", "trigger", "rows-per-batch", "hub")

SparkOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--spark",
        group=SPARK,
        help="A setting of the Spark job as NAME=VALUE, repeated. master=URL is Spark's master, "
        "such as spark://HOST:7077; by default this machine. trigger=TIME is the interval between "
        "micro-batches: 500ms, 1s or 2m; by default 1s. rows-per-batch=N is about how many rows a "
        "micro-batch has at most; by default 200000. hub=TERM is a term that very many quads have, "
        "as N-Triples text: what it is joined with is spread over partitions; it may be repeated.",
    ),
]


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """How a run uses Spark.

    >>> settings = SparkSettings.read(["trigger=500ms", "hub=<ex:a>", "hub=<ex:b>"])
    >>> settings.trigger, settings.hubs, settings.rows_per_batch
    ('500ms', ('<ex:a>', '<ex:b>'), 200000)
    """

    master: str | None = None
    trigger: str = "1s"
    rows_per_batch: int = 200_000
    hubs: tuple[str, ...] = ()

    @classmethod
    def read(cls, texts: Sequence[str]) -> SparkSettings:
        """Read the values of `--spark`."""
        given: dict[str, str] = {}
        hubs: list[str] = []
        for text in texts:
            name, _, value = (part.strip() for part in text.partition("="))
            if not value or name not in SPARK_NAMES:
                known = ", ".join(SPARK_NAMES)
                raise invalid("--spark", text, f"write NAME=VALUE; the names are {known}")
            if name == "hub":
                hubs.append(value)
            elif name in given:
                raise invalid("--spark", text, f"give {name} once")
            else:
                given[name] = value
        rows = given.get("rows-per-batch", "200000")
        if not (rows.isascii() and rows.isdecimal() and int(rows)):
            raise invalid("--spark", f"rows-per-batch={rows}", "give 1 or more")
        return cls(given.get("master"), given.get("trigger", "1s"), int(rows), tuple(hubs))


# --- Kafka ---

RecordFormat = Literal["json", "rdf-patch", "debezium"]

KAFKA_NAMES: Final = (
    "servers", "in", "format", "tables", "idle", "out", "rejected", "firings", "tombstones",
)  # fmt: skip

KafkaOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--kafka",
        group=SPARK,
        help="Read changes from topics of Kafka, not --changes: NAME=VALUE, repeated. "
        "servers=HOST:PORT,… and in=TOPIC, which may be repeated, are needed. "
        "format=json, rdf-patch or debezium says what its records are; tables=FILE, for debezium, "
        "how rows of tables become triples. idle=TICKS does not wait for a partition that is more "
        "ticks behind the others. out=TOPIC is for deltas of queries and complex events, "
        "rejected=TOPIC for rejected rows, firings=TOPIC for firings of rules. With tombstones=yes "
        "rows that disappear are records without a value; the queries must have DISTINCT. Other "
        "names, such as kafka.security.protocol, are options of Spark's Kafka source and sink.",
    ),
]


@dataclass(frozen=True, slots=True)
class KafkaTopics:
    """The topics that a run reads and writes.

    >>> topics = KafkaTopics.read(["servers=h:9092", "in=rail", "kafka.security.protocol=SSL"])
    >>> topics.in_topics, topics.record_format, topics.settings
    (('rail',), 'json', {'kafka.security.protocol': 'SSL'})
    """

    servers: str
    in_topics: tuple[str, ...]
    record_format: RecordFormat
    tables: Path | None
    idle: int | None
    out_topic: str | None
    rejected_topic: str | None
    firings_topic: str | None
    tombstones: bool
    settings: dict[str, str]
    """Options of Spark's Kafka source and sink."""

    @classmethod
    def read(cls, texts: Sequence[str]) -> KafkaTopics:
        """Read the values of `--kafka`, and reject those that do not go together."""
        given: dict[str, str] = {}
        topics: list[str] = []
        settings: dict[str, str] = {}
        for text in texts:
            name, _, value = (part.strip() for part in text.partition("="))
            is_sparks = "." in name or name != name.lower()
            if not value or not (is_sparks or name in KAFKA_NAMES):
                known = ", ".join(KAFKA_NAMES)
                raise invalid("--kafka", text, f"write NAME=VALUE; the names are {known}")
            if name == "in":
                topics.append(value)
            elif name in given:
                raise invalid("--kafka", text, f"give {name} once")
            else:
                (settings if is_sparks else given)[name] = value
        if "servers" not in given or not topics:
            raise GraphtideError(
                "--kafka needs servers and a topic of changes",
                hint="--kafka servers=HOST:9092 --kafka in=TOPIC",
            )
        if ("tables" in given) != (given.get("format") == "debezium"):
            raise GraphtideError("--kafka tables=FILE is for format=debezium, which needs it")
        if "out" not in given and given.keys() & {"rejected", "firings", "tombstones"}:
            raise GraphtideError("--kafka rejected, firings and tombstones need out=TOPIC")
        tables, idle = given.get("tables"), given.get("idle")
        if idle is not None and not (idle.isascii() and idle.isdecimal()):
            raise invalid("--kafka", f"idle={idle}", "give a whole number of ticks")
        return cls(
            given["servers"],
            tuple(topics),
            _chosen("format", given.get("format", "json"), get_args(RecordFormat)),
            None if tables is None else Path(tables),
            None if idle is None else int(idle),
            given.get("out"),
            given.get("rejected"),
            given.get("firings"),
            _chosen("tombstones", given.get("tombstones", "no"), ("yes", "no")) == "yes",
            settings,
        )


def _chosen(name: str, value: str, choices: tuple[str, ...]) -> Any:  # noqa: ANN401 - a literal
    """A value of `--kafka` that is one of some."""
    if value not in choices:
        raise invalid("--kafka", f"{name}={value}", f"choose from {', '.join(choices)}")
    return value


# --- errors of the command line ---


def command_line_error(error: CycloptsError) -> str:
    """What is wrong with the arguments, in one line; in the same words as `invalid`."""
    if isinstance(error, CoercionError) and error.token is not None:
        choices = [str(value) for value in get_args(error.target_type)]
        kind = _KINDS.get(error.target_type, "see --help")
        allowed = f"choose from {', '.join(choices)}" if choices else kind
        return str(invalid(error.token.keyword or "argument", error.token.value, allowed))
    error.verbose = False
    return " ".join(str(error).split())
