"""The OpenAPI description of the server: https://spec.openapis.org/oas/v3.1.0"""

from __future__ import annotations

from typing import Any, Final

from graphtide import __version__
from graphtide.serve import changes, protocol
from graphtide.serve.http import PROBLEM_TYPE

Described = dict[str, Any]

_TEXT: Final[Described] = {"type": "string"}
_NUMBER: Final[Described] = {"type": "integer"}
_OBJECT: Final[Described] = {"type": "object"}
_REASONS: Final = {
    400: "The request is wrong; the body says what and where",
    401: "A token is needed",
    403: "The token, or the page's origin, does not allow this",
    404: "There is no such thing",
    405: "This method is not for this path",
    406: "No format that the Accept header allows",
    408: "The body did not come in time",
    409: "A strict graph has the quad already, or not",
    413: "The body or the answer is too large",
    415: "The body is of another type",
    421: "The server answers for its own machine only",
    422: "The idempotency key was used for another body",
    429: "Too many subscriptions of this client",
    503: "The query took too long, or the server is stopping",
    507: "The disk is full",
}


def _parameter(name: str, what: str, where: str = "query", **schema: object) -> Described:
    found = {"name": name, "in": where, "description": what, "schema": {**_TEXT, **schema}}
    return found | ({"required": True} if where == "path" else {})


def _bodies(schemas: dict[str, Described]) -> Described:
    content = {media_type: {"schema": schema} for media_type, schema in schemas.items()}
    return {"required": True, "content": content}


def _operation(
    what: str,
    *,
    parameters: tuple[Described, ...] = (),
    body: Described | None = None,
    done: tuple[int, ...] = (200,),
    media_types: tuple[str, ...] = ("application/json",),
) -> Described:
    """One method of a path; errors are the same everywhere."""
    content: Described = {media_type: {} for media_type in media_types}
    responses: Described = {
        str(status): {"description": "Done"} | ({"content": content} if status != 204 else {})
        for status in done
    }
    problem = {"content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    responses |= {str(s): {"description": reason, **problem} for s, reason in _REASONS.items()}
    found: Described = {"summary": what, "responses": responses}
    if parameters:
        found["parameters"] = list(parameters)
    if body is not None:
        found["requestBody"] = body
    return found


_QUERY = (
    _parameter("query", "A SPARQL query; without it, the service describes itself"),
    _parameter("default-graph-uri", "A graph of the default graph; may be repeated"),
    _parameter("named-graph-uri", "A named graph; may be repeated"),
)
_ANSWERS = (*protocol.ROWS, *protocol.GRAPHS)
_SPARQL = _bodies(
    {
        "application/sparql-query": _TEXT,
        "application/sparql-update": _TEXT,
        protocol.FORM: {**_OBJECT, "properties": {"query": _TEXT, "update": _TEXT}},
    }
)
_UPDATE = _bodies(
    {
        "application/sparql-update": _TEXT,
        protocol.FORM: {**_OBJECT, "properties": {"update": _TEXT}, "required": ["update"]},
    }
)
_GRAPH = (
    _parameter("graph", "The IRI of a named graph"),
    _parameter("default", "The default graph; it has no value", maxLength=0),
)
_RDF = _bodies(dict.fromkeys(protocol.GRAPHS, _TEXT))
_KEY = _parameter("Idempotency-Key", "Sent again with the same key, it is done once", "header")
_LINES = dict.fromkeys(changes.LINES, _TEXT)
_SUBSCRIPTION = {
    **_OBJECT,
    "properties": {
        "query": {**_TEXT, "description": "SPARQL or RSP-QL"},
        "name": {**_TEXT, "description": "Instead of it: the name of a query that runs"},
        "cursor": {**_TEXT, "description": "With a store: a consumer that acknowledges"},
    },
}
_ID = _parameter("id", "The id of a subscription", "path", minLength=1)
_LAST = _parameter("Last-Event-ID", "The id of the last event that the client has", "header")

_PATHS: Final[Described] = {
    "/sparql": {
        "get": _operation("Ask a query", parameters=_QUERY, media_types=_ANSWERS),
        "post": _operation("Ask a query, or update", body=_SPARQL, media_types=_ANSWERS),
    },
    "/update": {"post": _operation("Run a SPARQL Update as one transaction", body=_UPDATE)},
    "/store": {
        "get": _operation("A graph", parameters=_GRAPH, media_types=tuple(protocol.GRAPHS)),
        "put": _operation("Replace a graph", parameters=_GRAPH, body=_RDF, done=(201, 204)),
        "post": _operation("Add to a graph", parameters=_GRAPH, body=_RDF, done=(200, 201)),
        "delete": _operation("Drop a graph", parameters=_GRAPH),
    },
    "/changes": {
        "post": _operation(
            "Apply changes, in transactions",
            parameters=(_KEY,),
            body=_bodies({**dict.fromkeys(changes.PATCHES, _TEXT), **_LINES}),
            done=(202,),
        )
    },
    "/streams/{name}/events": {
        "post": _operation(
            "Push events to a stream",
            parameters=(_parameter("name", "The IRI of a stream", "path", minLength=1), _KEY),
            body=_bodies(_LINES),
            done=(202,),
        )
    },
    "/subscriptions": {
        "post": _operation(
            "Subscribe to a query", body=_bodies({"application/json": _SUBSCRIPTION}), done=(201,)
        )
    },
    "/subscriptions/{id}": {
        "get": _operation("A subscription", parameters=(_ID,)),
        "delete": _operation("End a subscription", parameters=(_ID,), done=(204,)),
    },
    "/subscriptions/{id}/events": {
        "get": _operation(
            "The answer and its deltas, as server-sent events",
            parameters=(_ID, _LAST),
            media_types=("text/event-stream",),
        )
    },
    "/subscriptions/{id}/ack": {
        "post": _operation(
            "Acknowledge events of a subscription with a cursor",
            parameters=(_ID,),
            body=_bodies(
                {
                    "application/json": {
                        **_OBJECT, "properties": {"seq": _NUMBER}, "required": ["seq"],
                    }
                }
            ),
            done=(204,),
        )
    },
    "/subscriptions/{id}/why": {
        "post": _operation(
            "Why a row is in the answer, or with missing: true why it is not",
            parameters=(_ID,),
            body=_bodies(
                {
                    "application/json": {
                        **_OBJECT,
                        "properties": {
                            "row": {**_OBJECT, "additionalProperties": _TEXT},
                            "missing": {"type": "boolean"},
                        },
                    }
                }
            ),
        )
    },
    "/checkpoint": {"post": _operation("Write a snapshot of the store; for admin tokens")},
    "/metrics": {"get": _operation("Metrics for Prometheus", media_types=("text/plain",))},
    "/healthz": {"get": _operation("Whether the server runs", media_types=("text/plain",))},
    "/version": {"get": _operation("The version of the server")},
    "/openapi.json": {"get": _operation("This description")},
}  # fmt: skip

_PROBLEM: Final[Described] = {
    **_OBJECT,
    "required": ["status", "title"],
    "properties": {
        "status": _NUMBER, "title": _TEXT, "hint": _TEXT, "line": _NUMBER, "column": _NUMBER,
    },
}  # fmt: skip

DESCRIPTION: Final[Described] = {
    "openapi": "3.1.0",
    "info": {
        "title": "Graphtide",
        "version": __version__,
        "description": "A graph that changes: SPARQL, standing queries and changes over HTTP",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    },
    "paths": _PATHS,
    "components": {
        "schemas": {"Problem": _PROBLEM},
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    },
    "security": [{}, {"token": []}],
}
