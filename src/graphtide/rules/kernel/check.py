"""Tests between the times of events, as small programs over differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphtide.jit import inlined
from graphtide.rules.kernel.layout import ALL_OF, ANY_OF, ATOM

if TYPE_CHECKING:
    from graphtide.kernel.batch import Int
    from graphtide.rules.kernel.layout import Plan, Work


@inlined
def test_holds(plan: Plan, work: Work, number: Int) -> Int:
    """1 if a test is true of the times in `work.span`, 0 if not."""
    top = 0
    for i in range(plan.parts[number, 0], plan.parts[number, 1]):
        op = plan.code[i, 0]
        if op == ATOM:
            difference = work.span[plan.code[i, 1]] - work.span[plan.code[i, 2]]
            fits = plan.code[i, 3] <= difference <= plan.code[i, 4]
            work.stack[top] = 1 if fits else 0
            top += 1
            continue
        many = plan.code[i, 1]
        found = 0
        for _ in range(many):
            top -= 1
            found += work.stack[top]
        if op == ALL_OF:
            work.stack[top] = 1 if found == many else 0
        elif op == ANY_OF:
            work.stack[top] = 1 if found > 0 else 0
        else:
            work.stack[top] = 1 if found == 0 else 0
        top += 1
    return np.int64(work.stack[0])


@inlined
def all_hold(plan: Plan, work: Work, condition: Int, joined: Int) -> bool:
    """Whether all tests hold that became possible with the last event of a match."""
    for i in range(plan.ready[condition, joined, 0], plan.ready[condition, joined, 1]):
        if test_holds(plan, work, plan.tests[i]) == 0:
            return False
    return True
