"""The rooms of `make mutate`: what is changed, and which tests should notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mutants import SOURCE


@dataclass(frozen=True)
class Room:
    """Files to change, and the tests that should notice."""

    files: tuple[str, ...]
    tests: tuple[str, ...]

    def modules(self) -> list[Path]:
        paths = [path for pattern in self.files for path in sorted(SOURCE.glob(pattern))]
        return [path.relative_to(SOURCE) for path in paths]


ROOMS = {
    "certification": Room(("certification/**/*.py",), ("tests/certification",)),
    "verification": Room(
        ("construct/verify.py", "construct/heads.py", "nn/evaluate.py"),
        ("tests/construct", "tests/nn/test_evaluate.py"),
    ),
    # The proofs' constructions (construct/theorem2) have tests in tests/paper.
    "construct": Room(("construct/**/*.py",), ("tests/construct", "tests/paper")),
    "kernels": Room(("kernels/**/*.py",), ("tests/kernels",)),
    "audit": Room(("audit/**/*.py",), ("tests/audit", "tests/cli/test_inspect.py")),
    "corpus": Room(("corpus/**/*.py",), ("tests/corpus", "tests/test_tasks.py")),
    "files": Room(
        ("files.py", "documents.py", "nn/store.py", "plural.py"),
        (
            "tests/test_files.py",
            "tests/test_documents.py",
            "tests/nn/test_store.py",
            "tests/test_package.py::test_examples_in_docstrings[rankone.plural]",
        ),
    ),
    "exact": Room(
        ("nn/exact/*.py", "certification/exact_proof.py", "construct/vardi2022.py"),
        (
            "tests/nn/test_exact_numbers.py",
            "tests/nn/test_exact_network.py",
            "tests/nn/test_exact_evaluate.py",
            "tests/nn/test_exact_pieces.py",
            "tests/nn/test_exact_floats.py",
            "tests/nn/test_exact_store.py",
            "tests/certification/test_exact_proof.py",
            "tests/construct/test_vardi2022.py",
        ),
    ),
    "comparison": Room(("comparison/*.py",), ("tests/comparison",)),
    "theory": Room(("theory/**/*.py",), ("tests/theory", "tests/paper")),
    "nn": Room(("nn/**/*.py",), ("tests/nn",)),
    "training": Room(("training/**/*.py",), ("tests/training",)),
    "approximation": Room(("approximation/**/*.py",), ("tests/approximation",)),
}
