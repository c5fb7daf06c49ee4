"""The engine: a live graph, its transactions, and the standing queries that watch it."""

from graphtide.engine.live_graph import LiveGraph
from graphtide.engine.transaction import Transaction
from graphtide.engine.watch import Delta, DeltaRow, Watch

__all__ = ["Delta", "DeltaRow", "LiveGraph", "Transaction", "Watch"]
