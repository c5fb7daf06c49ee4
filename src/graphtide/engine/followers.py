"""Followers: those who go along with a graph, transaction by transaction, such as rules."""

from __future__ import annotations

from typing import Protocol


class Follower(Protocol):
    """Is told before the graph's clock moves on, and after every transaction."""

    def before(self, time: int) -> None:
        """The clock is going to be moved on to a time; the graph is still as it was."""

    def after(self) -> None:
        """A transaction is through; it may be changed again."""


class Followers(list[Follower]):
    """The followers of a graph. Whoever joins also counts as one of the graph's callbacks.

    >>> Followers().after()
    """

    def before(self, time: int, clock: int) -> None:
        """Tell all that the clock is going to be moved on, if it is."""
        if self and time > clock:
            for follower in tuple(self):
                follower.before(time)

    def after(self) -> None:
        """Tell all that a transaction is through."""
        for follower in tuple(self):
            follower.after()
