"""What is put out is what was frozen: see `transcripts.py`, and `make transcripts` for all."""

from __future__ import annotations

import pytest

from oracles import transcripts


def test_the_transcripts_that_are_kept_as_text():
    """A difference shows here as lines; `python -m oracles.transcripts --write` freezes anew."""
    frozen = transcripts.TEXTS.read_text(encoding="utf-8").split("=== ")[1:]
    assert len(frozen) == transcripts.KEPT
    for seed, text in enumerate(frozen):
        assert f"=== {text}" == transcripts.text_of(seed)


@pytest.mark.slow
def test_transcripts_by_their_hashes():
    frozen = transcripts.HASHES.read_text(encoding="utf-8").splitlines()
    assert [transcripts.hashes_of(group) for group in range(20)] == frozen[:20]


def test_a_difference_is_found(tmp_path, monkeypatch, capsys):
    """One digit of one part of one group is another one."""
    frozen = transcripts.HASHES.read_text(encoding="utf-8").splitlines()[:2]
    group, deltas, *rest = frozen[1].split()
    changed = ("1" if deltas[0] == "0" else "0") + deltas[1:]
    other = tmp_path / "hashes.txt"
    other.write_text("\n".join([frozen[0], " ".join([group, changed, *rest])]), encoding="utf-8")
    monkeypatch.setattr(transcripts, "HASHES", other)
    assert transcripts.main(["--count", "100", "--jobs", "1"]) == 1
    assert capsys.readouterr().out == "schedules 50 to 99: other deltas\n"
