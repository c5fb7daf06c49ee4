"""Random streams of events and changes, and what queries over windows say of them."""

from __future__ import annotations

from collections import Counter

from graphtide import LiveGraph
from graphtide.spark.partition.windows import DEFAULT_CLOCK
from oracles.partitions import PartitionRun

iri = "<http://e/{}>".format


def windowed(output, body, select="*", extent="RANGE 10 STEP 5", second=None):
    """A query over the window :w on :s, and perhaps :v on :t."""
    other = f"FROM NAMED WINDOW :v ON :t [{second}]" if second else ""
    window = f"FROM NAMED WINDOW :w ON :s [{extent}] {other}"
    return (
        f"PREFIX : <http://e/> REGISTER {output} :o AS SELECT {select} {window} WHERE {{ {body} }}"
    )


def event(time, tx, s, p, o, *, stream="s", graph=None):
    """A row of a stream."""
    return (time, tx, 1, iri(s), iri(p), iri(o), graph, f"http://e/{stream}")


def change(time, tx, diff, s, p, o):
    """A row of the graph."""
    return (time, tx, diff, iri(s), iri(p), iri(o), None, None)


def watermark(time):
    """Nothing before a time comes any more."""
    return (time, 2**40, 0, None, None, None, None, None)


def random_rows(rng, transactions, *, begin=0):
    """Rows in order of time; one transaction is either of the graph or of streams."""
    rows, time = [], begin
    for tx in range(transactions):
        time += rng.choice((0, 0, 1, 1, 2, 9))
        events = rng.random() < 0.6
        for _ in range(rng.randint(1, 3)):
            s, o = rng.choice("abcd"), rng.choice("abcd")
            if events:
                graph = rng.choice((None, iri("g1"), iri("g2")))
                stream = rng.choice("sst")
                rows.append(event(time, tx, s, rng.choice("pq"), o, stream=stream, graph=graph))
            else:
                rows.append(change(time, tx, rng.choice((1, 1, -1)), s, rng.choice("rp"), o))
    return rows, time


def in_process(queries, rows, end, clock=DEFAULT_CLOCK):
    """Reports of the in-process engine by query, time and values; rows of DSTREAM are negative."""
    graph = LiveGraph(
        tick_ms=clock.tick_ms,
        window_origin=clock.window_origin,
        window_alignment=clock.window_alignment,
    )
    registered = {name: graph.watch(text, name=name) for name, text in queries.items()}
    transactions = {}
    for row in rows:
        transactions.setdefault((row[0], row[1]), []).append(row)
    for (time, _), part in sorted(transactions.items()):
        if part[0][7] is None:
            with graph.transaction(time=time) as tx:
                for _, _, diff, s, p, o, *_ in part:
                    (tx.insert if diff > 0 else tx.delete)(s, p, o)
        for _, _, _, s, p, o, name, stream in part if part[0][7] else ():
            graph.stream(f"<{stream}>").push([(s, p, o)], time=time, graph=name)
    graph.advance(end)
    return output_of(registered)


def output_of(registered):
    """The rows of all reports."""
    net = Counter()
    for name, query in registered.items():
        sign = -1 if query.windows.windowed.output == "DSTREAM" else 1
        last, place = None, 0
        for report in query.results():
            place = place + 1 if report.time == last else 0
            last = report.time
            rows = Counter(
                tuple(None if v is None else str(v) for v in row.values()) for row in report
            )
            for values, count in rows.items():
                net[name, report.time, place, values] = sign * count
    return net


def on_partitions(queries, rows, partitions, rng, clock=DEFAULT_CLOCK):
    """What comes out of partitions, with any cut of the rows, failed attempts and lost workers."""
    run = PartitionRun.of(
        queries, partitions, workers=2, place=lambda _: rng.randrange(2), clock=clock
    )
    at, out = 0, []
    while at < len(rows):
        tasks = []
        for _ in range(rng.randint(1, 2)):
            size = rng.choice((1, 2, 5, 9))
            tasks.append(rows[at : at + size])
            at += size
        if rng.random() < 0.2:
            run.attempt(tasks)
        if rng.random() < 0.1:
            run.lose(rng.randrange(2))
        out += run.batch(tasks)
    return net_once(out), run


def net_once(out):
    """Rows by query, time and values; none may come twice at one time."""
    net = Counter()
    for row in out:
        key = row.query, row.time, row.tx, row.values
        assert key not in net, key
        net[key] = row.diff
    return net
