"""How many examples a property is tried on is decided in one place."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve()


def test_the_profile_decides_how_many_examples() -> None:
    """`quick` in `make test`, `thorough` in `make test-all`: no test has a number of its own."""
    others = sorted(set(HERE.parent.rglob("*.py")) - {HERE, HERE.with_name("conftest.py")})
    assert len(others) > 100
    assert [path.name for path in others if "max_examples" in path.read_text()] == []
