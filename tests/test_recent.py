"""A worker's caches keep the most recently used values, up to a total size."""

from laudo.server.recent import Recent


def test_the_least_recently_used_value_is_evicted() -> None:
    kept: Recent[str, int] = Recent(3)
    for number, key in enumerate("abc"):
        kept.keep(key, number)
    assert kept.get("a") == 0
    kept.keep("d", 3)
    assert [kept.get(key) for key in "abcd"] == [0, None, 2, 3]
    kept.keep("a", 4)
    kept.keep("e", 5)
    assert [kept.get(key) for key in "acde"] == [4, None, 3, 5]


def test_a_value_counts_with_its_size_until_it_is_replaced_or_dropped() -> None:
    kept: Recent[str, bytes] = Recent(10, len)
    kept.keep("a", bytes(6))
    kept.keep("a", bytes(4))
    kept.keep("b", bytes(6))
    assert (kept.get("a"), kept.get("b")) == (bytes(4), bytes(6))
    kept.drop("a")
    kept.drop("a")
    kept.keep("c", bytes(4))
    kept.keep("d", bytes(1))
    assert [kept.get(key) for key in "abcd"] == [None, None, bytes(4), bytes(1)]


def test_a_value_above_the_limit_is_not_kept_and_evicts_no_other() -> None:
    kept: Recent[str, bytes] = Recent(10, len)
    kept.keep("a", bytes(4))
    kept.keep("b", bytes(10 - 4))
    kept.keep("b", bytes(11))
    assert (kept.get("a"), kept.get("b")) == (bytes(4), None)
    kept.keep("c", bytes(6))
    assert (kept.get("a"), kept.get("c")) == (bytes(4), bytes(6))
    nothing: Recent[str, bytes] = Recent(0)
    nothing.keep("a", b"")
    assert nothing.get("a") is None
