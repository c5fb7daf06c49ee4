"""The W3C's tests of protocols: requests, in order, and what their responses must be."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from textwrap import dedent

from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse
from w3c.manifest import path_of, suite_folder

_HT = "http://www.w3.org/2011/http#"
_HTS = "http://www.w3.org/2011/http-statusCodes#"
_CNT = "http://www.w3.org/2011/content#"
_MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_UT = "http://www.w3.org/2009/sparql/tests/test-update#"
_CODES = {"OK": 200, "Created": 201, "NoContent": 204, "NotFound": 404, "BadRequest": 400}


@dataclass
class HttpStep:
    """A request, and what is expected of its response."""

    method: str
    path: str
    headers: dict[str, str]
    body: str | None
    statuses: set[int]
    expected_headers: dict[str, str] = field(default_factory=dict)
    expected_body: str | None = None
    expected_format: str | None = None
    expected_boolean: bool | None = None
    location: str | None = None


@dataclass
class HttpTest:
    """One test: its data by the names of graphs, and its steps."""

    name: str
    data: list[tuple[str, str]]
    steps: list[HttpStep]


def http_tests(folder: str, *manifests: str) -> list[HttpTest]:
    """The tests of manifests that describe requests in RDF; none when they are absent."""
    found = []
    for manifest in manifests:
        path = suite_folder() / "sparql11" / folder / manifest
        if not path.is_file():
            continue
        store = Store()
        quads = parse(path=path, format=RdfFormat.TURTLE, base_iri=path.as_uri())
        store.extend(Quad(q.subject, q.predicate, q.object) for q in quads)
        entries = _listed(store, _one(store, None, f"{_MF}entries"))
        found += [_test(store, test, folder) for test in entries]
    return found


def _test(store, test, folder) -> HttpTest:
    action = _one(store, test, f"{_MF}action")
    data = []
    for each in _all(store, test, f"{_UT}graphData"):
        file = _one(store, each, f"{_UT}graph").value.rpartition("/")[2]
        text = (suite_folder() / "sparql11" / folder / file).read_text(encoding="utf-8")
        data.append((_one(store, each, f"{_RDFS}label").value, text))
    steps = [_step(store, each) for each in _listed(store, _one(store, action, f"{_HT}requests"))]
    return HttpTest(test.value.rpartition("#")[2], data, steps)


def _step(store, request) -> HttpStep:
    response = _one(store, request, f"{_HT}resp")
    statuses = set()
    for status in _all(store, response, f"{_MF}expectedStatus"):
        name = status.value.removeprefix(_HTS)
        if name.startswith("StatusCode"):
            first = int(name[10]) * 100
            statuses |= set(range(first, first + 100))
        else:
            statuses.add(_CODES[name])
    boolean = _text(store, response, f"{_MF}expectedBoolean")
    return HttpStep(
        _text(store, request, f"{_HT}methodName"),
        _text(store, request, f"{_HT}absolutePath"),
        _headers(store, request),
        _body(store, request),
        statuses,
        _headers(store, response),
        _body(store, response),
        _text(store, response, f"{_MF}expectedFormat"),
        None if boolean is None else boolean == "true",
        _text(store, response, f"{_MF}expectedLocation"),
    )


def _headers(store, message) -> dict[str, str]:
    found = _all(store, message, f"{_HT}headers")
    return {
        _text(store, each, f"{_HT}fieldName"): _text(store, each, f"{_HT}fieldValue")
        for each in (_listed(store, found[0]) if found else ())
    }


def _body(store, message) -> str | None:
    found = _all(store, message, f"{_HT}body")
    return _text(store, found[0], f"{_CNT}chars") if found else None


def _all(store, subject, predicate):
    return [q.object for q in store.quads_for_pattern(subject, NamedNode(predicate), None)]


def _one(store, subject, predicate):
    (found,) = _all(store, subject, predicate)
    return found


def _text(store, subject, predicate) -> str | None:
    found = _all(store, subject, predicate)
    return found[0].value if found else None


def _listed(store, cell):
    while cell.value != f"{_RDF}nil":
        yield _one(store, cell, f"{_RDF}first")
        cell = _one(store, cell, f"{_RDF}rest")


def prose_steps() -> list[tuple[str, HttpStep]]:
    """The steps of the older suite, which describes requests and responses in comments."""
    path = path_of("w3c://sparql-tests/sparql11/http-rdf-update/manifest.ttl")
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    entry = r'(?ms)^gsp:(\w+) a mf:Graph.*?rdfs:comment """\n(.*?)"""'
    found = re.findall(entry, text)
    return [(name, _prose_step(comment)) for name, comment in found]


def _prose_step(comment: str) -> HttpStep:
    asked, answered = comment.split("#### Response")
    head, _, body = dedent(asked.replace("#### Request", "")).strip("\n").partition("\n\n")
    first, *lines = head.strip().splitlines()
    method, path, _ = first.split()
    headers = dict(line.split(": ", 1) for line in lines if not line.startswith("Host"))
    head, _, expected = dedent(answered).strip().partition("\n\n")
    status, *lines = head.splitlines()
    wanted = dict(line.split(": ", 1) for line in lines)
    location = wanted.get("Location")
    kind = {"content-type": wanted["Content-Type"]} if "Content-Type" in wanted else {}
    code = int(status.split()[0])
    return HttpStep(
        method, path, headers, body or None, {code}, kind, expected or None, location=location
    )
