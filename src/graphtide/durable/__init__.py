"""A live graph on disk: the journal of its inputs, snapshots, cursors; opening and replay."""
