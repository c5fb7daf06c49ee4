"""Cached machine code is removed when a source that was inlined into it changes."""

import pytest

from graphtide.jit import drop_stale_code


@pytest.fixture
def folders(tmp_path):
    kernel, helpers = tmp_path / "kernel", tmp_path / "helpers"
    (kernel / "__pycache__").mkdir(parents=True)
    helpers.mkdir()
    (kernel / "loop.py").write_text("1")
    (helpers / "draw.py").write_text("1")
    drop_stale_code(kernel, helpers)
    (kernel / "__pycache__" / "loop.nbc").write_text("machine code")
    return kernel, helpers


def code_stays(kernel):
    return (kernel / "__pycache__" / "loop.nbc").exists()


def test_code_of_the_same_sources_stays(folders):
    assert not drop_stale_code(*folders) and code_stays(folders[0])


@pytest.mark.parametrize("place", [0, 1])
def test_code_of_other_sources_goes(folders, place):
    next(folders[place].glob("*.py")).write_text("2")
    assert drop_stale_code(*folders) and not code_stays(folders[0])
