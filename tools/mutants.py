"""The changes of `make mutate`: cosmic-ray's operators and two of our own, for what matters most
here: a term that is dropped, and a bound that becomes the other one."""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider
from parso.python.tree import Name, PythonNode

SOURCE = Path.cwd() / "src" / "rankone"

PAIRS = "max min,maximum minimum,amax amin,argmax argmin,ceil floor,any all,upper lower"
OTHER = {a: b for p in PAIRS.split(",") for a, b in (p.split(), reversed(p.split()))}


class DropTerm(Operator):
    """a + b becomes a, and likewise a - b: an error term that nobody adds up."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(node, PythonNode) and node.type == "arith_expr" and len(node.children) >= 3:
            yield node.children[-2].start_pos, node.end_pos

    def mutate(self, node: Any, _: int) -> Any:
        del node.children[-2:]
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class SwapBound(Operator):
    """A lower bound becomes an upper one: max, min, ceil, floor, any, all."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(node, Name) and node.value in OTHER:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, _: int) -> Any:
        node.value = OTHER[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


@dataclass(frozen=True)
class Mutant:
    file: Path  # below src/rankone
    line: int
    operator: str
    text: str

    def diff(self) -> str:
        before = (SOURCE / self.file).read_text().splitlines()
        lines = difflib.unified_diff(before, self.text.splitlines(), lineterm="", n=0)
        changes = "\n".join(line for line in list(lines)[2:] if line[:2] != "@@")
        return f"{self.file}:{self.line} {self.operator}\n{changes}"


SUMS, BITS = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod"}, {"BitOr", "BitAnd", "BitXor"}


def operators() -> dict[str, Operator]:
    """Those of cosmic-ray but for changes nobody would make, such as + to >>: they fail at once,
    and would only make the score look better."""
    provider = OperatorProvider()
    found: dict[str, Operator] = {"DropTerm": DropTerm(), "SwapBound": SwapBound()}
    for name in provider:
        kind, *parts = name.split("/")[-1].split("_")
        if kind == "ReplaceBinaryOperator" and not (set(parts) <= SUMS or set(parts) <= BITS):
            continue
        if kind != "NoOp" and not provider[name].arguments():
            found[name] = provider[name]()
    return found


def silent(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where a change cannot be noticed: annotations, what is imported for them, lists of names,
    whether a dataclass is frozen or a zip strict."""
    places = []
    for node in ast.walk(ast.parse(text)):
        for part in _silent(node):
            if isinstance(part, ast.expr | ast.stmt):
                end = (part.end_lineno or 0, part.end_col_offset or 0)
                places.append(((part.lineno, part.col_offset - 1), end))  # a decorator has its @
    return places


def _silent(node: ast.AST) -> list[ast.AST | None]:
    match node:
        case ast.arg() | ast.AnnAssign():
            return [node.annotation]
        case ast.FunctionDef():
            return [node.returns]
        case ast.ClassDef():
            return [d for d in node.decorator_list if "dataclass" in ast.unparse(d)]
        case ast.If() if ast.unparse(node.test) == "TYPE_CHECKING":
            return [node]
        case ast.keyword(arg="strict"):  # of zip: a check for what is equal by construction
            return [node.value]
        case ast.Assign() if ast.unparse(node.targets[0]) == "__all__":
            return [node]
    return []


def places(file: Path) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Where the file can be changed, and by which operators: (name, occurrence)."""
    text = (SOURCE / file).read_text()
    tree, quiet = get_ast(text), silent(text)
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for name, operator in operators().items():
        occurrence = 0
        for node in ast_nodes(tree):
            for start, _ in operator.mutation_positions(node):
                if not any(a <= start < b for a, b in quiet):
                    found.setdefault(start, []).append((name, occurrence))
                occurrence += 1
    return found


def draw(files: Sequence[Path], sample: int, seed: int) -> list[Mutant]:
    """One change at each of so many places, those of a line last if the line has one already."""
    random_ = random.Random(seed)
    spots = [(file, spot, ways) for file in files for spot, ways in places(file).items()]
    random_.shuffle(spots)
    seen: set[tuple[Path, int]] = set()
    first, rest = [], []
    for spot in spots:
        line = (spot[0], spot[1][0])
        (rest if line in seen else first).append(spot)
        seen.add(line)
    table, mutants = operators(), []
    for file, (line, _), ways in [*first, *rest]:
        if len(mutants) == sample:
            break
        name, occurrence = random_.choice(ways)
        before = (SOURCE / file).read_text()
        try:
            text = mutate_code(before, table[name], occurrence)
        except AttributeError:  # cosmic-ray on `except (a.b, c)`
            continue
        if text is not None and _differs(before, text):
            mutants.append(Mutant(file, line, name.split("/")[-1], text))
    if any(mutant.file.parts[0] == "kernels" for mutant in mutants):
        mutants.sort(key=lambda mutant: (mutant.file, mutant.line))  # fewer things are compiled
    return mutants


def _differs(before: str, after: str) -> bool:
    """A change that does not parse, or is none, is no mutant."""
    try:
        return ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))
    except SyntaxError:
        return False
