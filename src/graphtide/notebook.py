"""Queries, programs and graphs that show themselves live in Jupyter, with the modules of the page.

Needs `graphtide[notebook]`. Without it, or outside a notebook, they are shown as before: a table
of what they are at the time.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.serve.page.data import PageData, error_json

if TYPE_CHECKING:
    from graphtide.engine.watch import Query
    from graphtide.rules.program import RunningProgram

FILES: Final = Path(__file__).parent / "serve" / "page" / "files"


def live_view(shown: Query | RunningProgram | LiveGraph) -> Any:  # noqa: ANN401 - a widget
    """A widget that shows a query, a program or a graph, and follows it."""
    graph = _graph_of(shown)
    if graph is None:
        raise GraphtideError("the graph of this query no longer exists")
    kind, names = "overview", None
    if not isinstance(shown, LiveGraph):
        program = getattr(shown, "program", None)
        if program is None:
            kind, names = "query", [shown.name]
        else:
            names = [x.name for x in (*program.queries, *program.patterns, *program.rules)]
    return _widget_class()(graph, kind, names)


def _graph_of(shown: Any) -> LiveGraph | None:  # noqa: ANN401 - a query, a program or a graph
    if isinstance(shown, LiveGraph):
        return shown
    host = getattr(shown, "_host", None) or shown._connection._runtime  # noqa: SLF001
    found: LiveGraph | None = host.facade()
    return found


@cache
def _widget_class() -> Any:  # noqa: ANN401 - a class of a library that may be missing
    """The class of the widget, made when it is first needed."""
    import anywidget  # noqa: PLC0415 - an extra
    import traitlets  # noqa: PLC0415

    modules = [path for path in FILES.rglob("*.js") if path.name not in ("main.js", "time.js")]
    sources = {path.relative_to(FILES).as_posix(): path.read_text() for path in modules}

    class LiveView(anywidget.AnyWidget):
        """A view of the page in a notebook; it asks the kernel instead of a server."""

        _esm = sources.pop("notebook.js")
        kind = traitlets.Unicode().tag(sync=True)
        names: Any = traitlets.List(allow_none=True).tag(sync=True)
        modules = traitlets.Dict(sources).tag(sync=True)
        style_sheet = traitlets.Unicode((FILES / "style.css").read_text()).tag(sync=True)

        def __init__(self, graph: LiveGraph, kind: str, names: list[str] | None) -> None:
            super().__init__(kind=kind, names=names)
            self._data = PageData(graph)
            self.on_msg(self._asked)

        def _asked(self, _: object, asked: dict[str, Any], __: object) -> None:
            self.send(answered(self._data, asked))

    return LiveView


def answered(data: PageData, asked: dict[str, Any]) -> dict[str, Any]:
    """The reply to a message of the widget: a request as it would go to a server."""
    where = urlsplit(str(asked.get("path", "")))
    path = [unquote(part) for part in where.path.split("/")]
    try:
        found = data.answer(
            str(asked.get("method", "GET")), path, dict(parse_qsl(where.query)), asked.get("body")
        )
    except GraphtideError as error:
        return {"id": asked.get("id"), "error": error_json(error)}
    return {"id": asked.get("id"), "found": found}


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - IPython's shell
    """Let IPython show queries, programs and graphs live; `import graphtide` does it by itself."""
    if find_spec("anywidget") is None:
        return
    formatter = shell.display_formatter.mimebundle_formatter
    for module, name in (
        ("graphtide.engine.watch", "Query"),
        ("graphtide.rules.program", "RunningProgram"),
        ("graphtide.graph", "LiveGraph"),
    ):
        formatter.for_type_by_name(module, name, _bundle)


def _bundle(shown: Any, **_: Any) -> Any:  # noqa: ANN401 - what IPython asks for
    """The widget of an object as IPython wants it, and its text for everything else."""
    bundle = live_view(shown)._repr_mimebundle_()
    data, *rest = bundle if isinstance(bundle, tuple) else (bundle,)
    data = {**data, "text/plain": repr(shown)}
    return (data, *rest) if rest else data
