"""Rules and patterns under kills at the worst moments.

A worker is killed at any moment, the driver at one of two: between the calls of a micro-batch and
its output, and between its output and its feedback.
"""

import pytest
from spark.faults.reactions import assert_equal, make_assault, stream

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("moment", ["call", "feedback"])
def test_rules_patterns_feedback_and_calls(moment, tmp_path):
    rows, last = stream(11, 80)
    assault = make_assault(tmp_path, rows, 11)
    try:
        assault.start(25)
        assault.kill("worker")
        assault.kill_at(moment)
        assault.start(60)
        assault.finish()
    finally:
        assault.clear()
    assert assault.kills == {"worker": 1, "driver": 1}
    assert max(note["oldest"] for note in assault.noted()) > 1, "logs were compacted on the way"
    repeated = assert_equal(tmp_path, rows, last)
    assert (repeated > 0) == (moment == "call"), "what was written is not called again"
