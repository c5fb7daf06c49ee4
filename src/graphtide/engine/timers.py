"""What is due when the clock moves on; Timers: the rows of conditions on NOW() that turn then."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from graphtide.algebra.clock import reads_clock
from graphtide.kernel.batch import VALUES, merge_batches
from graphtide.limits import Allowance

if TYPE_CHECKING:
    from graphtide.algebra.nodes import SelectQuery
    from graphtide.engine.events import EventBatch
    from graphtide.engine.runtime import Runtime
    from graphtide.kernel.batch import Ints


class Phase(IntEnum):
    """The order of what is due at one time.

    Windows close before the events of their time, and so does what waited for a late event. The end
    of a time comes when the clock moves past it: only then is it certain that an event is absent.
    """

    CLOSE = 0
    EVENT = 1
    END = 2


ALL_STREAMS: Final = object()
"""The cause of a move of the clock that raises the watermarks of all streams.

That is a change of the graph or a move by the user: no result for a time before it may know it. An
event raises the watermark of its own stream only, which is the cause of its move; an event of no
stream raises none, and the cause is None.
"""


class Due(NamedTuple):
    """When a follower has something to do."""

    time: int
    phase: Phase


class Follower(Protocol):
    """Follows a live graph: its clock, its transactions and its events."""

    def next_due(self, to: int, cause: object) -> Due | None:
        """Return what is due next if a cause moves the clock to a time (see `ALL_STREAMS`)."""

    def run_due(self, due: Due, cause: object) -> None:
        """Do what is due."""

    def time_passed(self, to: int, cause: object) -> None:
        """Take note that the clock has moved on, and that nothing is due before that time."""

    def after_transaction(self) -> None:
        """A transaction has been applied; the graph may be changed again."""

    def admit(self, events: EventBatch) -> EventBatch:
        """The events that it takes in; an error if it cannot."""

    taken: int
    """If `take_events` raises an error: how many events must not be given again."""

    def can_wait(self) -> bool:
        """Whether nobody could tell if events that come now were taken in later, together."""

    def take_events(self, events: EventBatch) -> int:
        """Match the first of some events, at least one, and act; how many.

        The rest has to wait until the effects of these have been worked off.
        """

    def go_on(self) -> bool:
        """No effect is left: publish or fire what has waited for that; whether there was any."""

    def abort(self) -> None:
        """The cascade has no end: forget it, as far as this follower took part."""


class Subscription:
    """That a follower follows a runtime; `close()` ends it."""

    __slots__ = ("_runtime", "follower")

    def __init__(self, runtime: Runtime, follower: Follower) -> None:
        self._runtime = runtime
        self.follower = follower

    def close(self) -> None:
        """Unsubscribe."""
        self._runtime.unsubscribe(self)

    def pass_to(self, follower: Follower) -> None:
        """Let another follower follow in its place."""
        runtime, before = self._runtime, self.follower
        followers = runtime.schedule.followers
        followers[followers.index(before)] = follower
        runtime.eager = tuple(follower if each is before else each for each in runtime.eager)
        self.follower = follower


def follow_clock(runtime: Runtime, query: SelectQuery) -> None:
    """See to it that a query that reads the clock follows it."""
    followers = runtime.schedule.followers
    if reads_clock(query.root) and not any(isinstance(each, Timers) for each in followers):
        now = runtime.queries.plans.now
        now.source, now.tick_ms = runtime.schedule, runtime.tick_ms
        runtime.subscribe(Timers(runtime), eager=False)


class Timers:
    """Follows the clock; the rows that turn at one time are one transaction at that time."""

    taken = 0

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._failed = False

    def next_due(self, to: int, cause: object) -> Due | None:  # noqa: ARG002 - a follower
        """The next time up to `to` at which rows turn; what waits is applied first."""
        self._runtime.flush()
        if self._failed:  # its error is raised when the clock has moved on
            return None
        timed = self._runtime.queries.plans.network.timed.values()
        turns = [turn for each in timed if (turn := each.next_turn()) is not None and turn <= to]
        return Due(min(turns), Phase.CLOSE) if turns else None

    def run_due(self, due: Due, cause: object) -> None:  # noqa: ARG002 - a follower
        """Let rows turn, those of a node after those of its inputs."""
        runtime, schedule = self._runtime, self._runtime.schedule
        network = runtime.queries.plans.network
        before = schedule.clock
        outputs: dict[int, Ints] = {}
        with runtime.in_steps([]), Allowance(runtime.limits, "flush") as left:
            try:
                schedule.clock = max(before, due.time)
                for node_id, operator in sorted(network.timed.items()):
                    turned = operator.turn()
                    if len(turned):
                        for reached, batch in network.step({node_id: turned}, left).items():
                            parts = [outputs[reached], batch] if reached in outputs else [batch]
                            outputs[reached] = merge_batches(parts, batch.shape[1] - VALUES)
            except BaseException as error:
                schedule.clock = before  # plans are made again, as of then
                self._failed = isinstance(error, Exception)
                raise
            runtime.emit(outputs, schedule.clock)

    def time_passed(self, to: int, cause: object) -> None:  # noqa: ARG002 - a follower
        """What has failed is tried again when the clock moves next."""
        self._failed = False

    def after_transaction(self) -> None:
        """Nothing to do."""

    def admit(self, events: EventBatch) -> EventBatch:
        """All of them."""
        return events

    def can_wait(self) -> bool:
        """Rows may turn between two events."""
        return False

    def take_events(self, events: EventBatch) -> int:
        """Events do not concern it."""
        return len(events)

    def go_on(self) -> bool:
        """Nothing waits for the end of a cascade."""
        return False

    def abort(self) -> None:
        """It takes part in no cascade."""
