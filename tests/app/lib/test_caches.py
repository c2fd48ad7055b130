from __future__ import annotations

from app.lib.caches import Cache


def test_what_was_not_used_lately_is_dropped_when_the_cache_is_full() -> None:
    cache: Cache[str, int] = Cache(3)
    for key, value in (("a", 1), ("b", 2), ("c", 3)):
        cache.put(key, value, weight=1)

    cache.get("a")
    cache.put("d", 4, weight=1)

    assert [cache.get(key) for key in "abcd"] == [1, None, 3, 4]


def test_a_heavy_value_makes_room_for_itself_and_one_that_is_too_heavy_is_not_kept() -> None:
    cache: Cache[str, int] = Cache(3)
    cache.put("a", 1, weight=1)

    cache.put("b", 2, weight=3)
    assert (cache.get("a"), cache.get("b")) == (None, 2)
    cache.put("c", 3, weight=4)
    assert cache.get("c") is None


def test_a_value_that_is_put_again_counts_once() -> None:
    cache: Cache[str, int] = Cache(3)
    for value in range(5):
        cache.put("a", value, weight=2)
    cache.put("b", 9, weight=1)

    assert (cache.get("a"), cache.get("b")) == (4, 9)
