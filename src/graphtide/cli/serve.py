"""`graphtide serve`: a graph over HTTP, with subscriptions and a page."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Group, Parameter

from graphtide.cli import options as opt
from graphtide.cli.explain import no_functions
from graphtide.cli.inputs import load_data, open_graph
from graphtide.datasets.railway import PROGRAM, QUERIES, change_stream
from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program

if TYPE_CHECKING:
    from graphtide.serve.page.run import RunData

PORT: Final = 8765
ACCESS: Final = Group("Access", sort_key=0)
DEMO_SECONDS: Final = 0.3
FOREVER: Final = 1 << 40


def serve(
    program: Path | None = None,
    /,
    *,
    data: opt.DataOption = None,
    store: opt.StoreOption = None,
    host: str = "127.0.0.1",
    port: int = PORT,
    token_file: Annotated[Path | None, Parameter(group=ACCESS)] = None,
    no_auth: Annotated[
        bool,
        Parameter(
            name="--no-auth",
            group=ACCESS,
            help="Let everybody who can reach --host read and write, without a token.",
        ),
    ] = False,
    cors: Annotated[tuple[str, ...], Parameter(group=ACCESS)] = (),
    read_only: bool = False,
    demo: bool = False,
    max_body_bytes: Annotated[int, Parameter(group=opt.BOUNDS)] = 64 << 20,
    max_rows: Annotated[int, Parameter(group=opt.BOUNDS)] = 1_000_000,
    max_subscriptions: Annotated[int, Parameter(group=opt.BOUNDS)] = 100,
    max_history: Annotated[int, Parameter(group=opt.BOUNDS)] = 20_000,
    tick_ms: opt.TickOption = 1000,
    limits: opt.LimitOptions = opt.DEFAULT_LIMITS,
) -> int:
    """Serve a graph.

    Parameters
    ----------
    program
        A .tide file of queries, events, patterns and rules to run, or a .rq file with one query.
    host
        The address to listen at. Others than those of this machine need --token-file or --no-auth.
    port
        The port to listen at; 0 chooses a free one.
    token_file
        A file with a role (read, write or admin) and a token in each line, which clients send as
        Authorization: Bearer TOKEN.
    cors
        An origin, such as https://example.org, whose pages may use the server. Repeat the option
        for several.
    read_only
        Only read the --store; another process may write to it.
    demo
        Let a railway change while the server runs; for a first look.
    max_body_bytes
        Most bytes of a request.
    max_rows
        Most rows of an answer.
    max_subscriptions
        Most subscriptions of one client.
    max_history
        Most delta rows that the query of a subscription retains, for readers that come back; with
        a --store they can go back further.
    """
    for option, value in (
        ("--port", port), ("--max-body-bytes", max_body_bytes), ("--max-rows", max_rows),
        ("--max-subscriptions", max_subscriptions), ("--max-history", max_history),
        ("--tick-ms", tick_ms),
    ):  # fmt: skip
        opt.at_least(option, value, 0 if option == "--port" else 1)
    check_needs()
    from graphtide.serve import access
    from graphtide.serve.app import create_app
    from graphtide.serve.host import Host, ServerSettings
    from graphtide.serve.server import listen, make_server, share_heap

    share_heap()
    tokens = {} if token_file is None else access.read_tokens(token_file)
    access.check_address(host, tokens, no_auth=no_auth)
    bound = listen(host, port)
    try:
        graph = _graph(program, data, store, read_only=read_only, tick_ms=tick_ms, limits=limits)
        settings = ServerSettings(
            body_bytes=max_body_bytes,
            rows=max_rows,
            subscriptions=max_subscriptions,
            history=max_history,
        )
        served = Host(graph, settings=settings)
        if demo:
            RailwayThread(graph).start_until_close(served.at_close)
        app = create_app(
            served,
            tokens=tokens,
            origins=frozenset(cors),
            local=access.is_loopback(host),
        )
        _log_access()
        name = f"[{host}]" if ":" in host else host
        url = f"http://{name}:{bound.getsockname()[1]}"
        print(f"{url}/ is open; Ctrl-C stops it", file=sys.stderr, flush=True)
        make_server(app, host, port).run(sockets=[bound])
    finally:
        bound.close()
    print("stopped", file=sys.stderr)
    return 0


class RailwayThread(Thread):
    """Lets a railway change, a few times a second; a program finds its faults."""

    def __init__(self, graph: LiveGraph) -> None:
        super().__init__(name="graphtide-railway", daemon=True)
        self._graph = graph
        self._ended = Event()

    def start_until_close(self, at_close: Callable[[Callable[[], object]], None]) -> None:
        """Run the program of the railway, and begin; end when a server closes."""
        known = {query.name for query in self._graph.queries}
        if not known.intersection(QUERIES):
            self._graph.run(Program.parse(PROGRAM), name="railway")
        self.start()
        at_close(self._end)

    def run(self) -> None:
        """Apply one transaction after the other."""
        for batch in change_stream(FOREVER):
            if self._ended.wait(DEMO_SECONDS):
                return
            self._graph.apply(batch, time=self._graph.clock + 1)

    def _end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def page_of(shown: LiveGraph | RunData) -> Iterator[None]:
    """Show a graph, or a run on Spark, on a page, as long as something runs on it."""
    check_needs()
    from graphtide.serve import app, host, server

    if isinstance(shown, LiveGraph):
        made = app.create_app(host.Host(shown))
    else:
        made = app.create_page_app(shown)
    with server.serving(made, port=free_port()) as running:
        print(f"{running.url}/ shows it; Ctrl-C ends it", file=sys.stderr, flush=True)
        yield


def wait_for_interrupt() -> None:
    """Let the page stay when what it shows has ended, until Ctrl-C."""
    print("all changes are read; the page stays until Ctrl-C", file=sys.stderr, flush=True)
    with suppress(KeyboardInterrupt):
        Event().wait()


def free_port() -> int:
    """The port of the page; 0, which stands for any, if it is taken."""
    from graphtide.serve.server import listen

    try:
        listen("127.0.0.1", PORT).close()
    except GraphtideError:
        return 0
    return PORT


def check_needs() -> None:
    """Raise if what a server needs is not installed."""
    missing = [name for name in ("starlette", "uvicorn", "websockets") if find_spec(name) is None]
    if missing:
        raise GraphtideError(
            f"a server needs {', '.join(missing)}", hint="install graphtide[serve]"
        )


def _graph(
    program: Path | None,
    data: list[Path] | None,
    store: Path | None,
    *,
    read_only: bool,
    tick_ms: int,
    limits: opt.LimitOptions,
) -> LiveGraph:
    """The graph that is served, with its data and its program."""
    declared = None if program is None else Program.read(program)
    functions = {} if declared is None else no_functions(declared)
    if read_only:
        if store is None or data or declared is not None:
            raise GraphtideError("--read-only needs a --store, and takes no data and no program")
        return LiveGraph.open(store, read_only=True, limits=limits.limits())
    graph = open_graph(store, limits.limits(), functions, tick_ms=tick_ms)
    if declared is not None and all(each.program != declared for each in graph.programs):
        graph.run(declared, functions=functions)
    load_data(graph, data or ())
    return graph


def _log_access() -> None:
    """Print the access log on standard error."""
    logger, handler = logging.getLogger("graphtide.serve.access"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
