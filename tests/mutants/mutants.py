"""Mutants: mistakes that a rebuild of the engine's loop would make, each as one edit of a file.

They measure the tests: what kills none of them would not notice such a mistake. `test_mutants.py`
checks that each text still occurs once; where the code changes, its mutant moves along.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Mutant(NamedTuple):
    """An edit: in a file below src/graphtide, a text that occurs once becomes another one."""

    name: str
    file: str
    old: str
    new: str
    mistake: str


MUTANTS: Final = (
    Mutant(
        "change-before-due",
        "engine/runtime.py",
        """                    self.reach(int(one[1][0]))
                    self._run(one)
""",
        """                    self._run(one)
                    self.reach(int(one[1][0]))
""",
        "a change of a batch is applied before what its time makes due",
    ),
    Mutant(
        "one-due-only",
        "engine/scheduler.py",
        """        while self._do_next(to, cause):
            pass
""",
        """        self._do_next(to, cause)
""",
        "a move of the clock does the first thing that is due, and drops the ticks after it",
    ),
    Mutant(
        "depth-first",
        "engine/scheduler.py",
        "self.depth, effect = self._effects.popleft()",
        "self.depth, effect = self._effects.pop()",
        "effects are delivered depth first",
    ),
    Mutant(
        "clock-not-undone",
        "engine/scheduler.py",
        "self.clock, self.raised = item.clock, item.raised",
        "self.raised = item.raised",
        "the clock stays where an interrupted batch had moved it",
    ),
    Mutant(
        "tokens-not-undone",
        "rules/firing.py",
        "self._detection.rollback(tokens)",
        "self._detection.savepoint()",
        "a cascade that is rolled back leaves the tokens of patterns as it has moved them",
    ),
    Mutant(
        "ends-before-closes",
        "engine/timers.py",
        "    END = 2\n",
        "    END = -1\n",
        "the end of a time comes before the windows that close at that time",
    ),
    Mutant(
        "watermark-of-others",
        "streams/registry.py",
        "return (cause,) if isinstance(cause, Stream) else ()",
        "return tuple(self.streams.values()) if isinstance(cause, Stream) else ()",
        "an event of a stream raises the watermarks of the other streams",
    ),
    Mutant(
        "change-raises-nothing",
        "engine/runtime.py",
        "return self.schedule.raised != self.schedule.clock",
        "return False",
        "a change at the clock's time raises no watermark, and so closes no window",
    ),
    Mutant(
        "close-after-its-instant",
        "streams/registry.py",
        "if time is not None and time <= placed.watermark(rising, to)",
        "if time is not None and time < placed.watermark(rising, to)",
        "a window closes after the input of the time at which it closes",
    ),
    Mutant(
        "late-event-accepted",
        "streams/stream.py",
        "late = times < self.watermark",
        "late = times < self.watermark - self.lateness",
        "an event that is older than the watermark is taken in",
    ),
    Mutant(
        "absence-ends-early",
        "rules/runtime.py",
        "return Due(int(time), Phase.END) if time < to else None",
        "return Due(int(time), Phase.END) if time <= to else None",
        "an absence ends a tick early, before the events of its last time",
    ),
    Mutant(
        "called-again",
        "engine/transaction.py",
        """        if not schedule.touched:
            self.made[at]""",
        """        if schedule.touched:
            self.made[at]""",
        "a function that was finished is called a second time after an interrupt",
    ),
    Mutant(
        "acts-after-failed-call",
        "rules/actions.py",
        """        for number, action in self._calls:
            given = [row.get(a) if isinstance(a, Var) else a for a in action.arguments]
            self._call(action.function, given, firing, number)
        self._effects.set_present(self._updates.changes(pending))
""",
        """        try:
            for number, action in self._calls:
                given = [row.get(a) if isinstance(a, Var) else a for a in action.arguments]
                self._call(action.function, given, firing, number)
        finally:
            self._effects.set_present(self._updates.changes(pending))
""",
        "a firing changes the graph although its CALL has failed",
    ),
    Mutant(
        "callback-amid-input",
        "engine/runtime.py",
        """            self.schedule.notices.extend(calls)
            self.unnotified.popleft()
""",
        """            self.unnotified.popleft()
            self.schedule.notices.extend(calls)
            while self.schedule.notices and not self.schedule.calling_back:
                self.schedule.call_back()
""",
        "callbacks run before the whole input is through",
    ),
    Mutant(
        "written-comes-last",
        "engine/scheduler.py",
        "self.next.insert(self._written, work)",
        "self.next.append(work)",
        "what a callback writes comes after the inputs that wait",
    ),
    Mutant(
        "retract-keeps-tokens",
        "rules/runtime.py",
        "self.detection.retract(event.order)",
        "self.detection.next_time()",
        "RETRACT forgets the event, but leaves the tokens that have consumed it",
    ),
    Mutant(
        "order-by-ids",
        "rules/agenda.py",
        """        return np.array([rank[text] for text in own], np.int64)
""",
        """        return ids.astype(np.int64) + 0 * rank[own[0]]
""",
        "matches of one event fire in the order in which their terms came first",
    ),
    Mutant(
        "batch-not-cut",
        "rules/runtime.py",
        "return bool(self._retracted) or self._schedule.queued > queued or changed",
        "return bool(self._retracted) or changed",
        "a batch goes on past an event whose action emits what later events meet",
    ),
    Mutant(
        "error-drops-firings",
        "rules/runtime.py",
        """the other firings go on
                self._schedule.report(error)
""",
        """the other firings go on
                raise error
""",
        "an action that fails drops the firings after it",
    ),
    Mutant(
        "closes-take-numbers",
        "engine/runtime.py",
        "            self.closes += closes\n",
        "            self.closes += 0\n",
        "closes of windows shift the numbers of transactions",
    ),
)
