"""Lexer of the .tide language: tokens by declaration; a SPARQL fragment is one token."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from lark import Token as LarkToken

from graphtide.errors import QueryError
from graphtide.lang.durations import UNITS
from graphtide.lang.sparql.scanner import Scanner, SparqlToken, place

DECLARATIONS: Final = (
    *("PREFIX", "INCLUDE", "CONTEXT"),
    *("QUERY", "EVENT", "PATTERN", "RULE", "GOAL", "FIX", "TEST"),
)
NAMED: Final = DECLARATIONS[3:]
"""Declarations that begin with a name."""

CONTEXTS: Final = ("CHRONICLE", "IMMEDIATE", "STRICT", "UNRESTRICTED")
RESERVED: Final = ("STREAM",)
MISFIT: Final = "MISFIT"
"""A token that the grammar never accepts, so that the parser reports what it expected."""

TOP_LEVEL: Final = (*DECLARATIONS, *RESERVED)
"""Words that start a declaration, outside of brackets."""

RELATIONS: Final = {
    "AFTER": 2, "BEFORE": 2, "COINCIDES": 2, "DURING": 4, "INCLUDES": 4, "FINISHES": 1,
    "FINISHEDBY": 1, "STARTS": 1, "STARTEDBY": 1, "MEETS": 1, "METBY": 1, "OVERLAPS": 2,
    "OVERLAPPEDBY": 2,
}  # fmt: skip
"""The temporal relations, with the maximum number of bounds."""

WORDS: Final = (
    *("AS", "ON", "APPEAR", "DISAPPEAR", "CHANGE", "OF", "FROM", "TO", "PRIORITY", "WHEN", "FACT"),
    *("NO", "EVENT", "WHERE", "AND", "OR", "NOT", "FILTER", "THEN", "INSERT", "DELETE", "EMIT"),
    *("CALL", "RETRACT"),
)
"""Keywords inside declarations."""

OWN_WORDS: Final = {
    "EVENT": ("CHECK", "UPDATE"),
    "RULE": ("UPDATE", "BIND", "IN"),
    "CONTEXT": CONTEXTS,
    "PATTERN": ("ALL", "WITHIN", "HOLDS", "FOR", "CONTEXT", *CONTEXTS, "PER"),
    "GOAL": ("NONE", "AT", "MOST", "MINIMIZE", "WEIGHT"),
    "FIX": ("COST",),
    "TEST": ("GIVEN", "AT", "PUBLISH", "UNTIL", "EXPECT", "ONLY"),
}
"""Keywords inside declarations of one kind only; elsewhere they can be names."""

AFTER_CONTEXT: Final = ("SKIP", "PAST", "LAST", "NEXT")
AFTER_COUNT: Final = ("GREEDY", "RELUCTANT")
INTERVAL: Final = "INTERVAL"
"""Keywords of patterns in one place only."""

ALL_WORDS: Final = (
    *(*WORDS, *(word for words in OWN_WORDS.values() for word in words)),
    *(*AFTER_CONTEXT, *AFTER_COUNT, INTERVAL),
)
_KEYWORDS: Final = frozenset((*TOP_LEVEL, *ALL_WORDS, *RELATIONS))

_BEFORE_EVENTS: Final = ("PATTERN", "AS", "ARROW", "OR", "AND", "NOT", "OPEN", "COMMA")
"""What the name of an event may follow in a pattern."""

_VALUES: Final = ("var", "number", "string", "language", "iri", "name")
"""Kinds of SPARQL's tokens with which a value may end."""

_OPENING, _CLOSING = ("{", "(", "["), ("}", ")", "]")
_SIGNS: Final = {"=": "EQUALS", ";": "SEMICOLON", "(": "OPEN", ")": "CLOSE", ",": "COMMA"}
_KINDS: Final = {"var": "VAR", "number": "NUMBER", "iri": "IRI", "name": "IRI", "string": "STRING"}
_DURATION: Final = re.compile(
    rf"[+-]?\s*(?:\d+(?:\.\d+)?(?:[A-Za-z]+|\s+(?:{'|'.join(UNITS)})\b)?|PT?\d[0-9A-Za-z.]*)",
    re.IGNORECASE,
)
_LINES: Final = "|".join(word for word in TOP_LEVEL if word != "CONTEXT")
_NEXT: Final = re.compile(rf"^[ \t]*(?:{_LINES})\b", re.IGNORECASE | re.MULTILINE)
_TEST: Final = re.compile(r"\s+\w+\s+(?:GIVEN|UNTIL|EXPECT)\b", re.IGNORECASE)
_NAMED_EVENT: Final = re.compile(r"\s+\w+\s*=")
_SIMILAR: Final = 0.7
"""How similar a word has to be to the declaration that it is taken for."""


@dataclass(slots=True)
class Chunk:
    """The tokens of one declaration, and its lexical error, if any.

    `misspelt`: its first word is taken for the one that was meant, so that the rest is checked.
    """

    tokens: list[LarkToken] = field(default_factory=list)
    error: QueryError | None = None
    misspelt: bool = False

    @property
    def word(self) -> str:
        """The first word."""
        return str(self.tokens[0].type)


def cut(text: str) -> list[Chunk]:
    """Split a program into declarations.

    >>> [chunk.word for chunk in cut("PREFIX : <ex:> QUERY a AS SELECT * { ?s ?p ?o }")]
    ['PREFIX', 'QUERY']
    """
    chunks: list[Chunk] = []
    start = 0
    while start < len(text):
        chunk = Chunk()
        try:
            start = _Cutter(text, start, chunk).declaration()
        except QueryError as error:
            chunk.error = error
            following = _NEXT.search(text, _after(text, start, error))
            start = following.start() if following else len(text)
        if chunk.tokens or chunk.error:
            chunks.append(chunk)
    return chunks


def _after(text: str, start: int, error: QueryError) -> int:
    """Where to continue after an error: below the line in which it is."""
    lines = text.split("\n")
    ends = sum(len(line) + 1 for line in lines[: error.line or 1])
    return min(max(start + 1, ends), len(text))


class _Cutter:
    """Tokenizes one declaration."""

    def __init__(self, text: str, start: int, chunk: Chunk) -> None:
        self._tokens = Scanner(text, start)
        self._chunk = chunk
        self._previous = ""
        self._waits = False

    def declaration(self) -> int:
        """Tokenize the declaration; returns the offset of the next one."""
        if self._tokens.token.kind == "end":
            return len(self._tokens.text)
        if not self._tokens.at(*TOP_LEVEL):
            meant = self._meant()
            self._chunk.misspelt = meant is not None
            if meant is None:
                self._misfits()
            else:
                self._add(meant)
                self._rest(query=meant == "QUERY")
        elif self._tokens.at(*RESERVED):
            self._add(self._tokens.token.text.upper())
            if self._tokens.token.kind == "word":
                self._add("NAME")
            self._body("REST")
        else:
            query = self._tokens.at("QUERY")
            self._add(self._tokens.token.text.upper())
            self._rest(query=query)
        return (
            self._tokens.token.start if self._tokens.token.kind != "end" else len(self._tokens.text)
        )

    def _misfits(self) -> None:
        self._add(MISFIT)
        if self._tokens.token.kind == "word" and not self._begins():
            self._add("NAME")
        while self._tokens.token.kind != "end" and not self._begins():
            self._tokens.advance()

    def _rest(self, *, query: bool) -> None:
        while self._tokens.token.kind != "end" and not self._begins():
            if query and self._previous == "AS":
                self._body("BODY")
            else:
                self._next()

    def _begins(self) -> bool:
        """Whether the next declaration begins here; after WHEN, EVENT belongs to the rule."""
        if self._tokens.token.kind != "word":
            return False
        if self._tokens.at("EVENT") and (self._waits or self._is_condition()):
            return False
        return self._declares()

    def _is_condition(self) -> bool:
        """Whether it is `EVENT name =` in a rule, the WHEN of which is missing or misspelt."""
        after = _NAMED_EVENT.match(self._tokens.text, self._tokens.token.end)
        kinds = {token.type for token in self._chunk.tokens}
        return after is not None and "RULE" in kinds and "THEN" not in kinds

    def _meant(self) -> str | None:
        """The declaration for which a word at the beginning of a line is a misspelling."""
        token = self._tokens.token
        if token.kind != "word" or not self._begins_line():
            return None
        following = self._tokens.next_token()
        if token.text.upper() in _KEYWORDS or following.text.upper() in _KEYWORDS:
            return None
        begins = {"word": NAMED, "name": ("PREFIX",), "string": ("INCLUDE",)}
        known = begins.get(following.kind, ())
        return next(iter(get_close_matches(token.text.upper(), known, 1, _SIMILAR)), None)

    def _begins_line(self) -> bool:
        start = self._tokens.token.start
        line = self._tokens.text.rfind("\n", 0, start) + 1
        return not self._tokens.text[line:start].strip()

    def _declares(self) -> bool:
        """Whether this word begins a declaration; the first CONTEXT of a pattern does not."""
        if self._tokens.at("TEST"):
            return self._declares_test()
        if not self._tokens.at("CONTEXT"):
            return self._tokens.at(*TOP_LEVEL) or self._meant() is not None
        tokens = self._chunk.tokens
        if tokens[0].type == "PATTERN" and all(token.type != "CONTEXT" for token in tokens):
            return False
        return any(self._tokens.follows(context) for context in CONTEXTS)

    def _declares_test(self) -> bool:
        """Whether TEST is the declaration: it was a name before, and can be one still."""
        if _TEST.match(self._tokens.text, self._tokens.token.end):
            return True
        following = self._tokens.next_token()
        word = following.text.upper()
        known = word in _KEYWORDS and word not in OWN_WORDS["TEST"]
        return self._begins_line() and following.kind == "word" and not known

    def _body(self, kind: str) -> None:
        """Everything up to the next declaration."""
        first = last = self._tokens.token
        depth = 0
        while self._tokens.token.kind != "end":
            if depth <= 0 and self._declares() and last.text.upper() not in ("ON", "REGISTER"):
                break
            depth += self._tokens.at(*_OPENING) - self._tokens.at(*_CLOSING)
            last = self._tokens.advance()
        if self._tokens.token is not first:
            self._put(kind, self._tokens.text[first.start : last.end], first.start)
        if depth > 0:  # unclosed bracket: the declarations below are not part of it
            following = _NEXT.search(self._tokens.text, first.end)
            if following:
                self._tokens.skip_to(following.start())

    def _next(self) -> None:
        token = self._tokens.token
        if self._chunk.word == "PATTERN" and self._pattern_piece():
            return
        if self._tokens.at("{"):
            self._piece("GROUP")
        elif self._tokens.at("[") and self._previous == "RELATION":
            self._piece("BOUNDS")
        elif self._tokens.at("(") and self._previous in ("NAME", "FILTER", "CHECK", "BIND"):
            self._piece("ARGUMENTS" if self._previous == "NAME" else "EXPRESSION")
        elif token.kind == "word":
            self._word(token)
        elif self._previous == "PREFIX":
            fits = token.kind == "name" and token.text.endswith(":")
            self._add("NAMESPACE" if fits else MISFIT)
        else:
            self._add(_SIGNS.get(token.text) or _KINDS.get(token.kind) or MISFIT)

    def _pattern_piece(self) -> bool:
        """Tokenize syntax that only patterns have; False if there is none here."""
        start = self._tokens.token.start
        if self._previous in ("WITHIN", "FOR"):
            written = _DURATION.match(self._tokens.text, start)
            if written is None:
                return False
            self._put("DURATION", written[0], start)
            self._tokens.skip_to(written.end())
        elif self._tokens.at("{"):
            self._piece("COUNT")
        elif self._tokens.at("?"):
            self._add("COUNT")
        elif self._previous == "WHERE":
            return self._condition()
        elif self._tokens.text.startswith("->", start):
            self._put("ARROW", "->", start)
            self._tokens.skip_to(start + 2)
        else:
            return False
        return True

    def _condition(self) -> bool:
        """Tokenize the expression after WHERE, in brackets or not; False if there is none.

        It ends at `->`, at `,`, at a bracket that it has not opened, and where a keyword or `{`
        follows a value: in SPARQL nothing of that can follow, except IN and NOT IN.
        """
        start = end = self._tokens.token.start
        alone, value = self._tokens.at("("), False
        while self._tokens.token.kind != "end" and not self._ends_condition(value=value):
            alone &= not value
            word = self._tokens.token.kind == "word" and not self._tokens.at("IN", "NOT")
            value = word or self._tokens.at("(") or self._tokens.token.kind in _VALUES
            end = (self._bracket() if self._tokens.at("(") else self._tokens.advance()).end
        if end > start:
            kind = "EXPRESSION" if alone else "CONDITION"
            self._put(kind, self._tokens.text[start:end], start)
        return end > start

    def _ends_condition(self, *, value: bool) -> bool:
        token = self._tokens.token
        if token.kind == "word" and not self._tokens.at("IN", "NOT"):
            return value or self._declares()
        arrow = self._tokens.text.startswith("->", token.start)
        return arrow or self._tokens.at(")", ",", "?", "{", "}")

    def _word(self, token: SparqlToken) -> None:
        word = token.text.upper()
        if word == "CHECK" and self._previous in ("EVENT", "OF"):
            self._add("NAME")
            return
        if word in ("WHEN", "THEN"):
            self._waits = word == "WHEN"
        own = OWN_WORDS.get(self._chunk.word, ())
        if self._chunk.word == "PATTERN":
            own += AFTER_COUNT if self._previous == "COUNT" else ()
            own += () if self._previous in _BEFORE_EVENTS else (INTERVAL,)
            own += AFTER_CONTEXT if any(t.type == "CONTEXT" for t in self._chunk.tokens) else ()
        if word in WORDS or (word in own and self._fits(word)):
            self._add(word)
        else:
            self._add("RELATION" if word in RELATIONS else "NAME")

    def _fits(self, word: str) -> bool:
        """Whether a word that may be a name, too, is a keyword here."""
        named = self._previous in ("ON", "EVENT", "EQUALS", "CALL", "RULE")
        binds = self._tokens.follows("(") and not named
        grouped = len(self._chunk.tokens) == 2
        return {"UPDATE": self._previous == "ON", "BIND": binds, "IN": grouped}.get(word, True)

    def _piece(self, kind: str) -> None:
        """A bracket with its content as one token."""
        start = self._tokens.token.start
        last = self._bracket()
        self._put(kind, self._tokens.text[start : last.end], start)

    def _bracket(self) -> SparqlToken:
        """Step over a bracket with its content; returns its last token."""
        first = self._tokens.token
        depth = 0
        while True:
            if self._tokens.token.kind == "end":
                closing = _CLOSING[_OPENING.index(first.text)]
                self._tokens.fail("unclosed bracket", at=first.start, hint=f"add '{closing}'")
            depth += self._tokens.at(*_OPENING) - self._tokens.at(*_CLOSING)
            last = self._tokens.advance()
            if depth == 0:
                return last

    def _add(self, kind: str) -> None:
        self._put(kind, self._tokens.token.text, self._tokens.token.start)
        self._tokens.advance()

    def _put(self, kind: str, value: str, start: int) -> None:
        line, column = place(self._tokens.text, start)
        token = LarkToken(kind, value, start_pos=start, line=line, column=column)
        token.end_pos = start + len(value)
        self._chunk.tokens.append(token)
        self._previous = kind
