"""Runs tables by the letter of their docstring, one token at a time, CHRONICLE or not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf

from graphtide.patterns.tables import AS_SLOT, BIND, CHECK, EQUALS, FINAL, SAME, SPARE, UNIFY


@dataclass
class Piece:
    state: int
    slots: list[int]
    entry: list[int]
    last: int
    start: int
    used: list[int] = field(default_factory=list)
    violated: set[int] = field(default_factory=set)
    noisy: bool = False


class TableRunner:
    """All tokens are in one list: no PER."""

    def __init__(self, tables, context):
        self.tables, self.context = tables, context
        self.tokens: list[Piece] = []
        self.events = 0

    def step(self, type_, values, time):
        found = self.advance(time)
        number, self.events = self.events, self.events + 1
        ways = [(token, self._can(token, type_, values, time)) for token in self.tokens]
        user = next((w for w in ways if w[1] and not self._spare(w[1][0])), None)
        fresh = Piece(0, [0] * self.tables.slot_count, [0] * self.tables.zone_count, 0, time)
        strict, born = self.context == "STRICT", False
        if user is None and not (strict and self.tokens):
            user, born = self._begin(fresh, type_, values, time)
        user = user or next((w for w in ways if w[1]), None)
        had, noise = bool(self.tokens), user is None and self.context != "CHRONICLE"
        self._missed(user and user[0], type_, values, time, noise=noise)
        if noise and strict and had and not self.tokens:
            user, born = self._begin(fresh, type_, values, time)
        if user is None:
            return found
        token, (move, slots) = user
        token.used.append(number)
        self.tokens += [token] if born else []
        return found + self._make(token, move, slots, time)

    def _begin(self, fresh, type_, values, time):
        can = self._can(fresh, type_, values, time)
        return ((fresh, can), True) if can else (None, False)

    def advance(self, to):
        found = []
        while True:
            due = [(self._end(t), i) for i, t in enumerate(self.tokens)]
            due = [d for d in due if d[0] is not None and d[0] < to]
            if not due:
                break
            end, i = min(due)
            token, move = self.tokens[i], int(self.tables.timer_of[self.tokens[i].state])
            for (zone,) in self.tables.enters.of(move):
                token.entry[zone] = token.last
            found += self._make(token, move, token.slots, end, timer=True)
        self.tokens = [t for t in self.tokens if self._deadline(t) >= to]
        return found

    def _spare(self, move):
        return bool(self.tables.flags[move] & SPARE)

    def _can(self, token, type_, values, time):
        move = int(self.tables.move_of[token.state, type_])
        if move < 0 or self._closed(token, move) or time > self._latest(token, move):
            return None
        slots = self._matched(self.tables.slots.of(move), values, list(token.slots))
        return None if slots is None else (move, slots)

    def _closed(self, token, move):
        entry = token.entry
        return (
            any(n in token.violated for (n,) in self.tables.nots.of(move))
            or (token.noisy and not self.tables.nots.of(move))
            or any(token.last - entry[z] < least for z, least in self.tables.held.of(move))
            or any(entry[i] + amount > entry[o] for i, o, amount in self.tables.order.of(move))
        )

    def _latest(self, token, move):
        return min((token.entry[z] + a for z, a in self.tables.latest.of(move)), default=inf)

    def _matched(self, rows, values, slots):
        for kind, argument, number in rows:
            value = values[argument]
            if kind == BIND or (kind == UNIFY and not slots[number]):
                slots[number] = value
            elif (
                (kind in {CHECK, UNIFY} and slots[number] != value)
                or (kind == EQUALS and value != number)
                or (kind == AS_SLOT and slots[number] not in {0, value})
                or (kind == SAME and value != values[number])
            ):
                return None
        return slots

    def _end(self, token):
        """When its timer fires; None if it has none, or one that is closed."""
        move = int(self.tables.timer_of[token.state])
        if move < 0:
            return None
        zone = int(self.tables.timer_zone[move])
        from_last = self.tables.timer_from_last[move]
        end = (token.last if from_last else token.entry[zone]) + int(self.tables.timer_length[move])
        tried = replace(token, entry=list(token.entry))
        for (entered,) in self.tables.enters.of(move):
            tried.entry[entered] = token.last
        return None if self._closed(tried, move) or end > self._latest(tried, move) else end

    def _deadline(self, token):
        timer, best = int(self.tables.timer_of[token.state]), -inf
        for (move,) in self.tables.state_moves.of(token.state):
            if move == timer:
                end = self._end(token)
                best = max(best, -inf if end is None else end)
            elif not self._closed(token, move):
                best = max(best, self._latest(token, move))
        return best

    def _missed(self, user, type_, values, time, *, noise):
        for token in self.tokens:
            token.noisy |= noise
            for (n,) in self.tables.state_nots.of(token.state) if token is not user else ():
                rows = self.tables.not_slots.of(n)
                if self.tables.not_type[n] == type_ and self._matched(rows, values, token.slots):
                    token.violated.add(n)
                if self.tables.not_type[n] == type_ and not rows:
                    token.violated.add(n)
        self.tokens = [t for t in self.tokens if t is user or self._deadline(t) >= time]

    def _make(self, token, move, slots, time, *, timer=False):
        token.slots, token.last, token.violated, token.noisy = slots, time, set(), False
        token.state = int(self.tables.target[move])
        for (zone,) in () if timer else self.tables.enters.of(move):
            token.entry[zone] = time
        entry = token.entry
        early = any(time - entry[z] < least for z, least in self.tables.early.of(move))
        ends = all(time - entry[z] >= least for z, least in self.tables.ends.of(move))
        complete = not early and self.tables.flags[move] & FINAL and ends
        if early or complete or self._deadline(token) < time:
            self.tokens.remove(token)
        values = tuple(token.slots[s] for s in self.tables.parameters)
        return [(values, time, token.start, tuple(token.used))] if complete else []
