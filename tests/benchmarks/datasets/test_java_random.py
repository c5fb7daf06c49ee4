import pytest

from benchmarks.datasets.java_random import JavaRandom

SEED = 19871053


@pytest.mark.parametrize(
    ("bound", "drawn"),
    [
        (19, [0, 0, 3, 13, 4, 2, 14, 13, 3, 5]),
        (9, [6, 1, 6, 2, 5, 5, 8, 1, 2, 0]),
        (3, [0, 1, 0, 2, 2, 2, 2, 1, 2, 0]),
        (1000, [503, 775, 59, 807, 575, 357, 334, 460, 438, 878]),
    ],
)
def test_known_draws(bound, drawn):
    assert JavaRandom(SEED).next_ints(bound, 10).tolist() == drawn
    one_by_one = JavaRandom(SEED)
    assert [one_by_one.next_int(bound) for _ in range(10)] == drawn


def defined(seed):
    """The 31-bit draws of a generator, from the definition in Java's documentation."""
    state = (seed ^ 0x5DEECE66D) % 2**48
    while True:
        state = (state * 0x5DEECE66D + 0xB) % 2**48
        yield state // 2**17


@pytest.mark.parametrize("bound", [1, 2, 16, 1 << 30, (1 << 30) + 1, 2**31 - 1])
def test_bounds_of_every_kind(bound):
    """With 2^30 + 1 nearly every second draw is rejected."""
    draws = defined(SEED)
    wanted = []
    while len(wanted) < 50:
        bits = next(draws)
        if bound & (bound - 1) == 0:
            wanted.append(bits * bound // 2**31)
        elif bits < 2**31 // bound * bound:
            wanted.append(bits % bound)
    assert JavaRandom(SEED).next_ints(bound, 50).tolist() == wanted


def test_bits_are_signed_numbers_of_java():
    random = JavaRandom(42)
    # new Random(42).nextInt(), three times
    assert [random.next(32) for _ in range(3)] == [-1170105035, 234785527, -1360544799]
    assert JavaRandom(SEED).next(31) == next(defined(SEED))


def test_a_shuffle_swaps_from_the_end():
    drawn = JavaRandom(SEED)
    places = list(range(7))
    for i in range(7, 1, -1):
        j = drawn.next_int(i)
        places[i - 1], places[j] = places[j], places[i - 1]
    shuffled = JavaRandom(SEED)
    assert shuffled.shuffled(7).tolist() == places != list(range(7))
    assert shuffled.next(31) == drawn.next(31), "as many draws"


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_shuffle_draws_nothing(count):
    random = JavaRandom(SEED)
    assert random.shuffled(count).tolist() == list(range(count))
    assert random.next(31) == JavaRandom(SEED).next(31)


@pytest.mark.parametrize("bound", [0, -1, 2**31])
def test_a_bound_that_java_refuses(bound):
    with pytest.raises(ValueError, match="bound"):
        JavaRandom(SEED).next_int(bound)
