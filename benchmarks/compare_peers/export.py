"""Write the inputs of the table of every kind of change as rows of three 32-bit integers.

They are little-endian.
"""

import sys
from pathlib import Path

import numpy as np

from benchmarks.route_sensor import make_workload
from benchmarks.sequence import make_events


def main(folder: Path) -> None:
    """Write the four inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    edges = make_workload(1_300_000, seed=0)
    route = np.column_stack([edges.relation, edges.s, edges.o])
    size, keys = 1_000_000, 10_000
    groups = np.column_stack(
        [np.arange(size), random.integers(0, keys, size), random.integers(0, 1000, size)]
    )
    pairs = np.unique(random.integers(0, 50_000, (100_000, 2)), axis=0)
    reach = np.column_stack([np.zeros(len(pairs)), pairs])
    reach = np.concatenate([reach, [[9, 0, 0]]])  # the source
    events = make_events(1_000_000, 1_000)
    sequence = np.column_stack([events.types, events.keys, events.times])
    inputs = {"route": route, "groups": groups, "reach": reach, "sequence": sequence}
    for name, rows in inputs.items():
        (folder / f"{name}.u32").write_bytes(rows.astype("<u4").tobytes())
        print(f"{name}: {len(rows):,} rows")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
