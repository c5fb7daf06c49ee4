"""What a standing basic graph pattern keeps in memory, and what a change costs, by strategy.

One graph of people, with one query of each class: ground, star, loosely connected, connected. Each
strategy takes in the graph triple by triple, every one a transaction, then deletes and inserts.
"""
