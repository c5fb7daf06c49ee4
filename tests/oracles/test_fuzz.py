"""Random queries under random change streams: over 2,000 cases, a few of them quick.

A case is one query under one stream. The seeds of the first tests are fixed, so that a red run can
be repeated; `fresh` takes another seed on every run and prints it.
"""

from __future__ import annotations

from random import SystemRandom

import pytest

from oracles.fuzz import run_cases

CASES = 60


@pytest.mark.slow
@pytest.mark.parametrize("first_seed", [7_000_000])
@pytest.mark.parametrize("twins", [False, True])
def test_a_few_cases(first_seed, twins):
    run_cases(20, first_seed, lambda: None, twins=twins)


@pytest.mark.slow
@pytest.mark.parametrize("first_seed", range(0, 22_000, 1000))
def test_engine_agrees_with_the_oracles(first_seed):
    run_cases(CASES, first_seed, lambda: None, twins=False)


@pytest.mark.slow
@pytest.mark.parametrize("first_seed", range(50_000, 54_000, 1000))
def test_engine_keeps_spellings_apart(first_seed):
    run_cases(CASES, first_seed, lambda: None, twins=True)


@pytest.mark.slow
def test_fresh_cases():
    fresh_seed = SystemRandom().randrange(10**6, 10**9)
    print(f"repeat with: make fuzz N={CASES} SEED={fresh_seed}")
    run_cases(CASES, fresh_seed, lambda: None, twins=False)
