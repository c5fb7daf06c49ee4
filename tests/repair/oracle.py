"""Brute-force search for repairs: sets of triples, queried and changed by pyoxigraph alone."""

import re
from dataclasses import dataclass, field

import pyoxigraph as ox

PREFIX = "PREFIX : <http://example.org/>\n"


@dataclass
class Goal:
    query: str
    most: int | None = 0
    weight: float = 1


@dataclass
class Fix:
    query: str
    delete: str = ""
    insert: str = ""
    cost: float = 1


@dataclass
class World:
    """Queries by name, goals and fixes by name; and the same as a program."""

    queries: dict[str, str]
    goals: dict[str, Goal]
    fixes: dict[str, Fix]
    _answers: dict = field(default_factory=dict)

    @property
    def program(self):
        lines = [PREFIX]
        lines += (f"QUERY {name} AS {text}" for name, text in self.queries.items())
        for name, goal in self.goals.items():
            if goal.most is None:
                lines.append(f"GOAL {name} MINIMIZE {goal.query} WEIGHT {goal.weight}")
            else:
                lines.append(f"GOAL {name} AT MOST {goal.most} OF {goal.query}")
        for name, fix in self.fixes.items():
            parts = [f"DELETE {{ {fix.delete} }}"] if fix.delete else []
            parts += [f"INSERT {{ {fix.insert} }}"] if fix.insert else []
            lines.append(f"FIX {name} COST {fix.cost} ON {fix.query} THEN {' ; '.join(parts)}")
        return "\n".join(lines)

    def rows(self, quads, query):
        """The rows of a query over a set of quads, as pyoxigraph has them."""
        key = quads, query
        if key not in self._answers:
            found = store_of(quads).query(PREFIX + self.queries[query])
            names = [variable.value for variable in found.variables]
            self._answers[key] = [dict(zip(names, map(str, row), strict=True)) for row in found]
        return self._answers[key]

    def violations(self, quads):
        hard = [goal for goal in self.goals.values() if goal.most is not None]
        return sum(max(0, len(self.rows(quads, goal.query)) - goal.most) for goal in hard)

    def soft(self, quads):
        soft = [goal for goal in self.goals.values() if goal.most is None]
        return sum(goal.weight * len(self.rows(quads, goal.query)) for goal in soft)

    def is_soft(self):
        return any(goal.most is None for goal in self.goals.values())

    def steps(self, quads):
        """The states after one fix, each with what it costs."""
        for fix in self.fixes.values():
            for row in self.rows(quads, fix.query):
                store = store_of(quads)
                gone, come = filled(fix.delete, row), filled(fix.insert, row)
                store.update(f"{PREFIX} DELETE DATA {{ {gone} }}; INSERT DATA {{ {come} }}")
                after = frozenset(store)
                if after != quads:
                    yield after, fix.cost


def store_of(quads):
    store = ox.Store()
    store.extend(quads)
    return store


def filled(template, row):
    return re.sub(r"\?(\w+)", lambda found: row[found[1]], template)


@dataclass
class Found:
    """What brute force found: the least steps and the least cost of a solution, and all states."""

    steps: int | None
    cost: float | None
    states: set
    solutions: set


def brute_force(world, quads, depth):
    """All states within so many steps; those that are good enough are not gone on from."""
    level = {frozenset(quads): 0.0}
    found = Found(None, None, set(), set())
    for steps in range(depth + 1):
        following = {}
        for state, price in level.items():
            found.states.add(state)
            solves = not world.violations(state)
            if solves:
                found.solutions.add(state)
                cost = price + world.soft(state)
                found.steps = steps if found.steps is None else found.steps
                found.cost = cost if found.cost is None else min(found.cost, cost)
            if steps < depth and not (solves and not world.is_soft()):
                for after, cost in world.steps(state):
                    following[after] = min(price + cost, following.get(after, price + cost))
        level = following
    return found
