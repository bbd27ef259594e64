"""Numbers with their nouns, as people write them."""

from __future__ import annotations


def plural(count: int, one: str, many: str | None = None) -> str:
    """
    >>> plural(0, "token"), plural(1, "token"), plural(1200, "token")
    ('0 tokens', '1 token', '1,200 tokens')
    >>> plural(2, "entity", "entities")
    '2 entities'
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
