"""The engine: one runtime per live graph, its standing queries, transactions and updates."""
