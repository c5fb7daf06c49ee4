"""SPARQL 1.1 Update on a live graph: each operation as quads that go and quads that come."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, assert_never
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import numpy as np

from graphtide.algebra import updates as upd
from graphtide.algebra.nodes import DefaultGraph, SelectQuery, TriplePattern
from graphtide.engine.ingest import GRAPH
from graphtide.engine.transaction import MultiStepTransaction
from graphtide.errors import DataError, GraphtideError
from graphtide.functions.templates import FilledQuad, fill_template
from graphtide.kernel.batch import VALUES, Ints
from graphtide.kernel.search.program import reject_lookups
from graphtide.lang.sparql.parse import parse_update
from graphtide.rdf.formats.change_log import read_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyoxigraph import NamedNode

    from graphtide.algebra.expressions import Var
    from graphtide.engine.runtime import Runtime
    from graphtide.rdf.terms import Term

NOTHING: Ints = np.empty((0, 4), np.int32)


def run_update(
    runtime: Runtime, text: str | upd.Update, time: int | None, load_from: str | Path | None
) -> int:
    """Run an update request as one transaction, all or nothing; how many quads it changed."""
    runtime.flush()
    request = parse_update(text) if isinstance(text, str) else text
    runtime.reject_inside_callback("update()")
    if not runtime.store.stores:  # before anything of it is applied, which could not be undone
        reject_lookups(1)
    folder = None if load_from is None else Path(load_from)
    with runtime.schedule, runtime.schedule.one_call:
        runtime.schedule.inputs += 1
        try:
            stamp = runtime.reach(time)
            transaction = MultiStepTransaction(runtime)
            with runtime.in_steps(transaction.steps):
                changed = sum(
                    transaction.change(*changes_of(operation, runtime, folder))
                    for operation in request.operations
                )
                runtime.emit(transaction.outputs(), stamp)
        finally:
            runtime.schedule.inputs -= 1
        if runtime.schedule.notices:
            runtime.flush()
    return changed


def changes_of(
    operation: upd.Operation, runtime: Runtime, folder: Path | None
) -> tuple[Ints, Ints]:
    """The quads that an operation takes away and those it puts in, as the graph is now."""
    match operation:
        case upd.InsertData(template):
            return NOTHING, _filled(runtime, template, [{}], scope=str(uuid4()))
        case upd.DeleteData(template):
            return _filled(runtime, template, [{}]), NOTHING
        case upd.Modify(delete, insert, where):
            rows = solutions(runtime, where)
            come = _filled(runtime, insert, rows, scope=str(uuid4()))
            return _filled(runtime, delete, rows), come
        case upd.Load():
            return NOTHING, _loaded(operation, runtime, folder)
        case upd.Clear(target) | upd.Drop(target):
            return _targeted(runtime, target), NOTHING
        case upd.Create(name, silent):
            if not silent and len(_of_graph(runtime, name)):
                raise GraphtideError(f"the graph {name} exists already", hint="use CREATE SILENT")
            return NOTHING, NOTHING
        case upd.Copy() | upd.Move() | upd.Add():
            return _transferred(operation, runtime)
        case _:
            assert_never(operation)


def solutions(runtime: Runtime, query: SelectQuery) -> list[dict[Var, Term]]:
    """The rows of a query now, with their bound variables only."""
    rows = runtime.queries.evaluate(query)
    decode = runtime.terms.decode
    return [
        {v: decode(i) for v, i in zip(query.variables, row[VALUES:], strict=True) if i}
        for row in rows.tolist()
        for _ in range(row[1])
    ]


def _filled(
    runtime: Runtime,
    template: tuple[TriplePattern, ...],
    rows: Iterable[Mapping[Var, Term]],
    *,
    scope: str = "",
) -> Ints:
    """The quads of a template for some rows, as ids."""
    if not template:
        return NOTHING
    quads = [quad for row in rows for quad in fill_template(template, row, scope=scope)]
    return _encoded(runtime, quads)


def _encoded(runtime: Runtime, quads: list[FilledQuad]) -> Ints:
    known, given = runtime.terms.known.get, runtime.terms.intern_given

    def encode(term: Term) -> int:
        return known(term) or given(term)

    ids = [(encode(s), encode(p), encode(o), 0 if g is None else encode(g)) for s, p, o, g in quads]
    return np.array(ids, np.int32).reshape(-1, 4)


def _of_graph(runtime: Runtime, name: NamedNode | DefaultGraph) -> Ints:
    quads = runtime.quad_ids()
    wanted = 0 if isinstance(name, DefaultGraph) else runtime.terms.lookup(name)
    if not wanted and not isinstance(name, DefaultGraph):
        return NOTHING
    found: Ints = quads[quads[:, GRAPH] == wanted]
    return found


def _targeted(runtime: Runtime, target: NamedNode | DefaultGraph | upd.Graphs) -> Ints:
    match target:
        case upd.Graphs.ALL:
            return runtime.quad_ids()
        case upd.Graphs.NAMED:
            quads = runtime.quad_ids()
            named: Ints = quads[quads[:, GRAPH] != 0]
            return named
        case _:
            return _of_graph(runtime, target)


def _transferred(operation: upd.Copy | upd.Move | upd.Add, runtime: Runtime) -> tuple[Ints, Ints]:
    source, destination = operation.source, operation.destination
    found = _of_graph(runtime, source)
    if not isinstance(source, DefaultGraph) and not len(found):
        if operation.silent:
            return NOTHING, NOTHING
        raise GraphtideError(f"there is no graph {source}", hint="use SILENT to go on without it")
    if source == destination:
        return NOTHING, NOTHING
    moved = found.copy()
    moved[:, GRAPH] = (
        0 if isinstance(destination, DefaultGraph) else runtime.terms.intern(destination)
    )
    if isinstance(operation, upd.Add):
        return NOTHING, moved
    gone = _of_graph(runtime, destination)
    if isinstance(operation, upd.Move):
        gone = np.concatenate([gone, found])
    return gone, moved


def _loaded(operation: upd.Load, runtime: Runtime, folder: Path | None) -> Ints:
    try:
        path = _allowed(operation.source, folder)
        columns = [
            [runtime.terms.intern_column(column) for column in (batch.s, batch.p, batch.o)]
            for batch in read_changes(path, limits=runtime.limits)
        ]
    except (GraphtideError, OSError) as problem:
        if operation.silent:
            return NOTHING
        if isinstance(problem, GraphtideError):
            raise
        raise DataError(f"{operation.source} cannot be loaded: {problem}") from None
    into = operation.into
    name = 0 if isinstance(into, DefaultGraph) else runtime.terms.intern(into)
    quads = [np.column_stack([*ids, np.full(len(ids[0]), name, np.int32)]) for ids in columns]
    return np.concatenate([NOTHING, *quads]).astype(np.int32)


def _allowed(source: NamedNode, folder: Path | None) -> Path:
    """The file that LOAD names, if it lies in the folder that files may be loaded from."""
    if folder is None:
        raise GraphtideError(
            f"LOAD {source} is not allowed here",
            hint="name the folder that files may be loaded from: update(text, load_from=folder)",
        )
    parts = urlsplit(source.value)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise GraphtideError(f"LOAD {source}: only files can be loaded", hint="use a file: IRI")
    root = folder.resolve()
    path = (root / unquote(parts.path)).resolve()
    if not path.is_relative_to(root):
        raise GraphtideError(f"LOAD {source}: the file is not inside {folder}")
    return path
