"""Options that several commands have: one name, one type and one help text each.

An option whose values depend on the command (`--format`, `--out`) begins its help with the same
sentence everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from cyclopts import CoercionError, CycloptsError, Parameter

from graphtide.errors import GraphtideError
from graphtide.lang.sparql.prefixes import Prefixes
from graphtide.limits import NAMES, Limits
from graphtide.plan.patterns import Strategy
from graphtide.rdf.changes import OnError

_KINDS: Final[dict[type | None, str]] = {int: "give a whole number", float: "give a number"}

Engine = Literal["spark", "process"]

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
        help="Milliseconds per tick, the unit of time. Durations in seconds, minutes and hours are "
        "converted to ticks.",
    ),
]
UntilOption = Annotated[
    int | None,
    Parameter(
        name="--until",
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
        help="Number of partitions of the Spark job; by default one per core of this machine.",
    ),
]
Layout = Literal["grid", "rete"]
LayoutOption = Annotated[
    Layout | None,
    Parameter(
        name="--layout",
        help="How queries are divided on Spark: grid (one stage, and copies of quads) or rete (a "
        "stage for each join, without copies); by default for each query the cheaper one.",
    ),
]
HubOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--hub",
        help="A term that very many quads have, as N-Triples text: on Spark, what it is joined "
        "with is spread over partitions. Repeat the option for several. With auto, `run` finds "
        "such terms itself and goes on with them.",
    ),
]
DisableOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--disable",
        help="A group of rules (RULE name IN group) that does not run. Repeat the option for "
        "several. A run on Spark that is stopped is switched with evolve, and goes on with the "
        "same groups.",
    ),
]
MasterOption = Annotated[
    str | None,
    Parameter(
        name="--master",
        help="Spark's master URL, such as spark://HOST:7077; by default this machine.",
    ),
]
PrefixesOption = Annotated[
    Prefixes,
    Parameter(
        name="--prefixes",
        help="With common, queries and programs need not declare rdf, rdfs, owl, xsd, foaf, skos "
        "and other well-known prefixes.",
    ),
]
ServiceAllowOption = Annotated[
    tuple[str, ...],
    Parameter(
        name="--service-allow",
        help="An endpoint that SERVICE may ask; with * at its end, all that begin so. Repeat the "
        "option for several. By default none is asked.",
    ),
]
ServiceRefreshOption = Annotated[
    float | None,
    Parameter(
        name="--service-refresh",
        help="Ask the endpoints of SERVICE again every so many seconds; by default only once.",
    ),
]
VerboseOption = Annotated[
    int,
    Parameter(
        name=["--verbose", "-v"],
        count=True,
        show_default=False,
        help="Of every command: say on standard error what happens, such as loops that are "
        "compiled, plans that change, late and rejected input, checkpoints. -vv says more.",
    ),
]


def _limit(name: str, text: str) -> Parameter:
    default = getattr(Limits(), name.replace("-", "_"))
    return Parameter(name=f"--limit-{name}", help=f"{text} By default {default:,}; 0 is no limit.")


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LimitOptions:
    """The options that set limits, one for each of `graphtide.Limits`.

    >>> LimitOptions(digits=50, query_seconds=0).limits().query_seconds is None
    True
    """

    query_seconds: Annotated[
        float | None, _limit("query-seconds", "Most seconds of a query, or of its first answer.")
    ] = None
    query_bytes: Annotated[
        int | None, _limit("query-bytes", "Most bytes of the intermediate results of a query.")
    ] = None
    flush_seconds: Annotated[
        float | None,
        _limit("flush-seconds", "Most seconds in which queries take in a batch of changes."),
    ] = None
    flush_bytes: Annotated[
        int | None, _limit("flush-bytes", "Most bytes of the intermediate results of that.")
    ] = None
    path_pairs: Annotated[
        int | None, _limit("path-pairs", "Most pairs of nodes that a property path connects.")
    ] = None
    digits: Annotated[int | None, _limit("digits", "Most digits of a number in an expression.")] = (
        None
    )
    literal_length: Annotated[
        int | None,
        _limit("literal-length", "Most characters of a literal, bytes of a statement in a file."),
    ] = None
    regex_steps: Annotated[
        int | None,
        _limit("regex-steps", "Most steps of a regular expression that needs backtracking."),
    ] = None
    unpacked_bytes: Annotated[
        int | None, _limit("unpacked-bytes", "Most bytes that a packed file unpacks to.")
    ] = None
    entity_bytes: Annotated[
        int | None, _limit("entity-bytes", "Most bytes that the entities of RDF/XML expand to.")
    ] = None

    def limits(self) -> Limits:
        """The limits: those given, and the defaults."""
        given: dict[str, Any] = {n: getattr(self, n) for n in NAMES if getattr(self, n) is not None}
        for name, value in given.items():
            at_least(f"--limit-{name.replace('_', '-')}", value, 0)
        return Limits(**{name: value or None for name, value in given.items()})


DEFAULT_LIMITS: Final = LimitOptions()


def invalid(option: str, value: object, allowed: str) -> GraphtideError:
    """The error for a value that an option does not take, with what it takes.

    >>> str(invalid("--trigger", "5x", "write 500ms, 1s or 2m"))
    'invalid --trigger "5x": write 500ms, 1s or 2m'
    """
    return GraphtideError(f'invalid {option} "{value}": {allowed}')


def at_least(option: str, value: float | None, least: int) -> None:
    """Reject a number below the least that an option takes.

    >>> at_least("--limit", 0, 1)
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: invalid --limit "0": give 1 or more
    """
    if value is not None and value < least:
        raise invalid(option, value, f"give {least} or more")


# --- Kafka ---

RecordFormat = Literal["json", "rdf-patch", "debezium"]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """The options for topics of Kafka. Without `--kafka` there are none."""

    servers: Annotated[
        str | None,
        Parameter(
            name="--kafka",
            help="Kafka's servers, HOST:PORT,…: read changes from --in-topic, not --changes.",
        ),
    ] = None
    in_topics: Annotated[
        tuple[str, ...],
        Parameter(name="--in-topic", help="Topic of changes. Repeat the option for several."),
    ] = ()
    record_format: Annotated[
        RecordFormat, Parameter(name="--record-format", help="What the records of --in-topic are.")
    ] = "json"
    tables: Annotated[
        Path | None,
        Parameter(
            name="--tables",
            help="JSON file that says how the rows of tables become triples, for debezium.",
        ),
    ] = None
    idle: Annotated[
        int | None,
        Parameter(
            name="--idle",
            help="Do not wait for a partition of --in-topic that is more ticks behind the others "
            "than this. By default a partition without records holds back all others.",
        ),
    ] = None
    out_topic: Annotated[
        str | None,
        Parameter(name="--out-topic", help="Topic for the deltas of queries and complex events."),
    ] = None
    rejected_topic: Annotated[
        str | None, Parameter(name="--rejected-topic", help="Topic for rejected rows.")
    ] = None
    firings_topic: Annotated[
        str | None, Parameter(name="--firings-topic", help="Topic for the firings of rules.")
    ] = None
    tombstones: Annotated[
        bool,
        Parameter(
            name="--tombstones",
            negative="",
            help="Records of rows that disappear have no value, for a compacted --out-topic. The "
            "queries must have DISTINCT.",
        ),
    ] = False
    settings: Annotated[
        tuple[str, ...],
        Parameter(
            name="--kafka-option",
            help="NAME=VALUE for Spark's Kafka source and sink, such as "
            "kafka.security.protocol=SSL. Repeat the option for several.",
        ),
    ] = ()

    def check(self) -> None:
        """Reject options that do not go together."""
        if self.servers is None:
            if self != NO_KAFKA:
                raise GraphtideError(
                    "options for topics need --kafka", hint="give its servers: --kafka HOST:9092"
                )
            return
        if not self.in_topics:
            raise GraphtideError("--kafka needs --in-topic", hint="name the topic of changes")
        if (self.tables is None) != (self.record_format != "debezium"):
            raise GraphtideError("--tables is for --record-format debezium, which needs it")
        others = self.rejected_topic or self.firings_topic or self.tombstones
        if self.out_topic is None and others:
            raise GraphtideError(
                "--rejected-topic, --firings-topic and --tombstones need --out-topic"
            )
        at_least("--idle", self.idle, 0)
        for text in self.settings:
            if not text.partition("=")[1]:
                raise invalid("--kafka-option", text, "write NAME=VALUE")

    @property
    def source_options(self) -> dict[str, str]:
        """Options of Spark's Kafka source and sink."""
        pairs = (text.partition("=") for text in self.settings)
        return {name.strip(): value.strip() for name, _, value in pairs}


NO_KAFKA: Final = KafkaOptions()


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


def check_minimum(value: int, option: str, minimum: int) -> None:
    """Raise if the value of an option is too small."""
    if value < minimum:
        raise invalid(option, value, f"the minimum is {minimum}")


def names(text: str, option: str) -> list[str]:
    """Read a list of distinct names.

    >>> names("A, B,A", "--plans")
    ['A', 'B']
    """
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise invalid(option, text, "separate names by single commas")
    return list(dict.fromkeys(found))


def numbers(text: str, option: str, minimum: int = 1) -> list[int]:
    """Read a list of distinct integers.

    >>> numbers("1, 24", "--sizes")
    [1, 24]
    """
    parts = [part.strip().replace("_", "") for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and int(part) >= minimum for part in parts):
        example = f"{minimum},5000"
        raise invalid(option, text, f"give integers from {minimum} on, such as {example}")
    return list(dict.fromkeys(map(int, parts)))
