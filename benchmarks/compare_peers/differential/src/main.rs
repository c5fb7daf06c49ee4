//! RouteSensor, groups and reachability on differential dataflow, one worker.
//!
//! `compare route|groups|reach FILE [CHANGES PER EPOCH]`, where FILE holds little-endian u32 values as
//! `export.py` writes them, and 0 changes per epoch stand for all. Then single changes: 1,000 times,
//! an edge or row is removed and inserted again, and each result is awaited.

use std::time::Instant;

use differential_dataflow::input::InputSession;
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::Iterate;
use differential_dataflow::VecCollection;
use timely::dataflow::operators::probe::Handle;
use timely::progress::Timestamp;

type Row = (u32, u32, u32);
const UPDATES: usize = 1_000;

/// Routes that follow a switch position whose switch is monitored by a sensor they do not require.
fn route_sensor<'s, T: Timestamp + Lattice + Ord>(
    edges: VecCollection<'s, T, Row>,
) -> VecCollection<'s, T, Row> {
    let of = |relation: u32| {
        edges.clone().filter(move |edge| edge.0 == relation).map(|(_, s, o)| (s, o))
    };
    let (follows, target, monitored, requires) = (of(0), of(1), of(2), of(3));
    follows
        .map(|(route, position)| (position, route))
        .join_map(target, |position, route, switch| (*switch, (*route, *position)))
        .join_map(monitored, |switch, of, sensor| ((of.0, *sensor), (of.1, *switch)))
        .antijoin(requires)
        .map(|((route, sensor), (position, _))| (route, sensor, position))
}

/// The number of rows of each key and the sum of their values.
fn groups<'s, T: Timestamp + Lattice + Ord>(
    rows: VecCollection<'s, T, Row>,
) -> VecCollection<'s, T, Row> {
    rows.explode(|(_, key, value)| Some((key, (1isize, value as isize))))
        .count()
        .map(|(key, (rows, sum))| (key, rows as u32, sum as u32))
}

/// The nodes that can be reached from the roots, which are the rows with 9 in front.
fn reach<'s, T: Timestamp + Lattice + Ord>(
    edges: VecCollection<'s, T, Row>,
) -> VecCollection<'s, T, Row> {
    let roots = edges.clone().filter(|row| row.0 == 9).map(|(_, root, _)| (root, ()));
    let pairs = edges.filter(|row| row.0 != 9).map(|(_, from, to)| (from, to));
    roots
        .clone()
        .iterate(|scope, inner| {
            let (pairs, roots) = (pairs.enter(scope), roots.enter(scope));
            inner.join_map(pairs, |_, _, to| (*to, ())).concat(roots).distinct()
        })
        .map(|(node, ())| (node, 0, 0))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let job = arguments[0].clone();
    let bytes = std::fs::read(&arguments[1]).expect("the file of export.py");
    let at_once: usize = arguments.get(2).map_or(0, |text| text.parse().expect("a number"));
    let rows: Vec<Row> = bytes
        .chunks_exact(12)
        .map(|row| {
            let value = |at: usize| u32::from_le_bytes(row[at..at + 4].try_into().unwrap());
            (value(0), value(4), value(8))
        })
        .collect();
    timely::execute_directly(move |worker| {
        let mut probe = Handle::new();
        let mut input: InputSession<u32, Row, isize> = InputSession::new();
        let counted = std::rc::Rc::new(std::cell::Cell::new(0isize));
        let seen = counted.clone();
        worker.dataflow(|scope| {
            let rows = input.to_collection(scope);
            let answer = match job.as_str() {
                "route" => route_sensor(rows),
                "groups" => groups(rows),
                "reach" => reach(rows),
                other => panic!("{other}: not route, groups or reach"),
            };
            answer
                .inspect(move |change| seen.set(seen.get() + change.2))
                .probe_with(&mut probe);
        });
        let size = if at_once == 0 { rows.len() } else { at_once };
        let start = Instant::now();
        let mut time = 0;
        for part in rows.chunks(size) {
            part.iter().for_each(|row| input.insert(*row));
            time += 1;
            input.advance_to(time);
            input.flush();
            worker.step_while(|| probe.less_than(&time));
        }
        let seconds = start.elapsed().as_secs_f64();
        let matches = counted.get();
        let mut spent: Vec<f64> = Vec::with_capacity(2 * UPDATES);
        for at in 0..UPDATES {
            let row = rows[at * (rows.len() / UPDATES)];
            for add in [false, true] {
                let start = Instant::now();
                if add { input.insert(row) } else { input.remove(row) }
                time += 1;
                input.advance_to(time);
                input.flush();
                worker.step_while(|| probe.less_than(&time));
                spent.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        assert_eq!(counted.get(), matches, "the same rows as before");
        let mean = spent.iter().sum::<f64>() / spent.len() as f64;
        spent.sort_by(f64::total_cmp);
        println!(
            "{{\"job\": \"{job}\", \"rows\": {}, \"matches\": {matches}, \"seconds\": {seconds:.3}, \"rows_per_s\": {:.0}, \
             \"update_us\": {{\"median\": {:.1}, \"mean\": {mean:.1}, \"p99\": {:.1}}}}}",
            rows.len(),
            rows.len() as f64 / seconds,
            spent[spent.len() / 2],
            spent[spent.len() * 99 / 100],
        );
    });
}
