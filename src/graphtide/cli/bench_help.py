"""What the help of the benchmarks says: they are imported only when they run."""

from __future__ import annotations

from typing import Final

HELP: Final = {
    "train": """Train Benchmark: read a railway model, check it, transform and recheck it in rounds.

Example: `graphtide bench train --sizes 1,4,16 --queries RouteSensor --strategy search,rete`

Each measurement runs in its own process, one after the other; use a quiet machine. Lists are
separated by commas.""",
    "sparql": """Cost of one change per SPARQL operator, while its state grows; use a quiet machine.

Example: `graphtide bench sparql --sizes 10000,100000 --operators "COUNT; MIN; top 10"`

Each change is a transaction of its own.""",
    "windows": """Windows over graph streams: incremental, evaluated anew, and pyoxigraph.

Example: `graphtide bench windows --only table1 --quick`

Every event is followed by a report. Each measurement runs in its own process, one after the
other; use a quiet machine. Matches of all three ways are compared on the way.""",
    "bgp": """Patterns of four classes: cache entries, bytes and cost per change of every strategy.

Example: `graphtide bench bgp --sizes 100000 --plot bgp`

Each measurement runs in its own process, one after the other; use a quiet machine.""",
    "rules": """AlarmConfirmation over facts and events: events per second, beside clipspy.

Example: `graphtide bench rules --sizes 1000 --events 100000`

Events come as ids, as Arrow columns of texts, and call by call. Each measurement runs in its
own process, one after the other; use a quiet machine. All must fire for the same pairs.""",
    "gesture": """Gestures before a camera: the event engine alone, and the chain from coordinates.

Example: `graphtide bench gesture --bodies 24,100,500 --no-most`

Of each body, 40 attributes change in every frame. A frame is one transaction; the chain is fed
with ids or with texts, or is a program whose rule fires for each gesture. Each measurement runs
in its own process, one after the other; use a quiet machine.""",
    "sequence": """a -> b -> c -> d of one key within 10 s, each event used once.

Example: `graphtide bench sequence --events 100000`

Beside it, an automaton in plain Python that can do nothing else, with the same matches; and
Flink, where it is installed. Each measurement runs in its own process; use a quiet machine.""",
}
"""By name; the first line is shown in the list of commands."""
