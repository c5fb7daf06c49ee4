"""The benchmark of standing patterns: its data, its claims about what is kept, its reports."""

import json

import numpy as np
import pytest
from support.decomposition import query_class

from graphtide.bench.bgp.measure import CONTENDERS, Task, measure
from graphtide.bench.bgp.people import MARKS, PER_PERSON, people
from graphtide.bench.bgp.plot import write_plot
from graphtide.bench.bgp.queries import QUERIES, query_text
from graphtide.bench.bgp.report import to_objects, to_table
from graphtide.bench.bgp.run import make_tasks, run_tasks
from graphtide.cli.main import main
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.physical import Decomposed, nodes
from graphtide.rdf.dictionary import TermDictionary

SIZE = 4500


@pytest.fixture(scope="module")
def results():
    return run_tasks(make_tasks([SIZE], seed=3), measure=measure)


@pytest.mark.parametrize("of_class", QUERIES)
def test_each_query_is_of_its_class(of_class):
    plan = build_plan(parse_query(query_text(of_class)), "decomposed")
    (matched,) = [node for node in nodes(plan.root) if isinstance(node, Decomposed)]
    assert query_class(matched.patterns) == of_class


def test_people_have_all_their_triples_and_none_twice():
    rows = people(SIZE, TermDictionary(), 1)
    assert len(rows) == len(np.unique(rows, axis=0)) == SIZE
    assert np.unique(rows[:, 0], return_counts=True)[1].tolist() == [PER_PERSON] * (
        SIZE // PER_PERSON
    )
    assert len(MARKS) < PER_PERSON


def test_all_contenders_have_the_same_answers(results):
    assert len(results) == len(QUERIES) * len(CONTENDERS)
    for of_class in QUERIES:
        own = [r for r in results if r.of_class == of_class]
        assert len({(r.rows, r.delta_rows) for r in own}) == 1
        assert any(r.delta_rows for r in own)


def test_a_star_keeps_at_most_a_mask_for_each_centre_and_nothing_per_triple(results):
    for result in results:
        if result.of_class == "star" and result.contender.startswith("decomposed"):
            assert 0 < result.entries <= SIZE // PER_PERSON


def test_without_quads_nothing_else_is_kept(results):
    for result in results:
        if result.contender == "decomposed, no quads":
            assert result.quad_bytes < 1000


def test_reports(results, tmp_path):
    pytest.importorskip("matplotlib")
    assert to_table(results).row_count == len(results)
    assert json.loads(json.dumps(to_objects(results)))[0]["of_class"] == "ground"
    assert [p.name for p in write_plot(results, tmp_path / "bgp")] == ["bgp.png", "bgp.svg"]
    assert (tmp_path / "bgp.png").stat().st_size > 1000


def test_contenders_that_disagree_stop_the_benchmark(results):
    def wrong(task):
        result = measure(Task(task.of_class, "search", 900))
        return (
            result
            if task.contender == "rete"
            else type(result)(**{**to_objects([result])[0], "rows": -1})
        )

    with pytest.raises(GraphtideError, match="others have"):
        run_tasks(make_tasks([900], seed=0)[:2], measure=wrong)


def test_a_size_that_is_none_is_refused(capsys):
    assert main(["bench", "bgp", "--sizes", "many"]) == 2
    assert "'many' is not a number of triples" in capsys.readouterr().err
