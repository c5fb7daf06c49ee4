"""Actions: what a rule does when it fires; all it changes in the graph is one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.errors import ActionError
from graphtide.functions.templates import fill_template
from graphtide.lang.declarations import CallFunction, Emit, Retract
from graphtide.rules.insertions import Insertions, action_scope
from graphtide.rules.updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphtide.lang.declarations import RuleDeclaration
    from graphtide.rules.firing import Firing
    from graphtide.rules.program import RunningProgram
    from graphtide.rules.turn import Turn


class Actions:
    """Carries out the actions of a rule. First come the calls: if one fails, nothing is changed."""

    def __init__(
        self, running: RunningProgram, rule: RuleDeclaration,
        functions: Mapping[str, Callable[..., object]],
    ) -> None:  # fmt: skip
        self._running = running
        self._rule = rule
        self._functions = functions
        self._updates = Updates(rule, running.graph.terms)
        self._calls = [each for each in rule.actions if isinstance(each, CallFunction)]
        self._others = [
            (number, each)
            for number, each in enumerate(rule.actions)
            if isinstance(each, Retract | Emit)
        ]
        self._looks = bool(self._calls or self._others)
        self.insertions: Insertions | None = None

    def inserts_only(self, variables: tuple[Var, ...]) -> None:
        """The rule does nothing but insert what no query matches: many firings go at once."""
        self.insertions = Insertions(self._rule, variables, self._running.graph.terms)

    def carry_out(self, turn: Turn) -> None:
        """Carry them out; what happens if one fails is for the policy to say."""
        policy = self._running.policy
        for left in range(policy.retries, -1, -1):
            try:
                self._try(turn)
            except Exception as problem:
                if left:
                    continue
                error = failed(turn.firing(), problem)
                if policy.on_error == "stop":
                    raise error from problem
                self._running.problems.append(error)
            return

    def _try(self, turn: Turn) -> None:
        firing = turn.firing() if self._looks else None
        row = {} if firing is None else firing.row
        for action in self._calls:
            given = [row.get(a) if isinstance(a, Var) else a for a in action.arguments]
            self._functions[action.function](*given)
        self._running.change(self._updates.changes(turn))
        for number, other in self._others:
            match other:
                case Retract(event) if firing is not None and firing.match is not None:
                    self._running.retract(firing.match.events[event])
                case Emit(stream, template):
                    scope = action_scope(turn.rule, turn.number, number)
                    quads = fill_template(template, row, scope=scope)
                    self._running.emit(stream, [(s, p, o) for s, p, o, _ in quads])
                case _:
                    pass


def failed(firing: Firing, problem: Exception) -> ActionError:
    """What to tell of an action that failed."""
    values = ", ".join(f"?{name}={term}" for name, term in firing.values.items())
    return ActionError(
        f"the rule {firing.rule} failed at {firing.time} with {values or 'no values'}: "
        f"{type(problem).__name__}: {problem}",
        hint='run(…, on_error="skip") goes on with other rules, retries=n tries again',
    )
