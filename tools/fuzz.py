"""Coverage-guided fuzzing of everything that reads files: python tools/fuzz.py TARGET --seconds N

Whatever the bytes, a reader gives what it promises or a RankOneError, in time linear in their
number. Atheris (pip install atheris) mutates made-up files of every layout; the first input that
breaks the promise ends the run, is kept in --findings, and is run again by --replay FILE. What is
found becomes a test.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

Run = Callable[[bytes], None]

ROWS = (
    b"the DT O\nwill NN B-X\n\nthe DT O\nwill MD I-X\n",
    b"-DOCSTART- _ O\n\nthe DT O\n-DOCSTART- _ O\nend NN B-X\n",
    b"a\tX\nrose\tY\n\nis\tZ\n",
    b"token\tlemma\tner\nNew York\tNew York\tB-LOC\nis\tbe\tO\n",
    b"\xef\xbb\xbfa X\r\nb Y\r\n\r\nc X\r\n",
    b"a X\rb Y\r\rc X\r",
    b"# sent_id = 1\n1-2\tdon't" + b"\t_" * 8 + b"\n1\tdo\tdo\tAUX\tVB" + b"\t_" * 5 + b"\n",
    b'{"tokens": ["a", "rose"], "labels": ["X", 2]}\n\n{"tokens": [], "labels": []}\n',
    b'{"tokens": ["\\ud83d\\ude00", "-DOCSTART-"], "labels": ["O", "O"]}\n',
    b"Foo bar baz the qux\nA line of another length .\n",
    b"one\nword\n\nper\nline\n",
    b"\xc2\xa0 X\n\xe3\x80\x80 Y\n\xe2\x80\xa8 \xef\xbb\xbf\n",
    gzip.compress(b"the DT O\nwill NN B-X\n", mtime=0),
)
# In the spelling of libFuzzer's dictionaries.
WORDS = tuple(r"-DOCSTART- \"tokens\" \"labels\" \x09 \x1f\x8b token\x09tag B- I- 1.1".split())
JSON = tuple(r"null NaN Infinity 1e400 -1 \"\\ud800\" [[[[ {} [] true 0.5".split())


class Target(NamedTuple):
    """What to run on bytes, what to begin with, and words that the fuzzer may put in."""

    run: Run
    seeds: list[bytes]
    words: tuple[str, ...]


def corpus(_: Path) -> Target:
    """Every reader; the first byte chooses how, the rest is the file."""
    from rankone import inspect, read_corpus
    from rankone.corpus.layouts import READERS
    from rankone.corpus.read import read_like

    formats = ("auto", *READERS)
    options = (
        {},
        {"labelled": False},
        {"labelled": None, "lower": True},
        {"label_column": 2, "scheme": "auto"},
        {"token_column": -1, "label_column": "tags", "labelled": None},
    )

    def run(data: bytes) -> None:
        chosen, data = (data[0], data[1:]) if data else (0, b"")
        sys.stdin = io.TextIOWrapper(io.BytesIO(data))
        started = time.process_time()
        how = divmod(chosen, len(formats))
        if how[0] % 6 == 5:
            found = read_like("-", {"columns": 3}, {"O", "X", "."}, labelled=None)
        else:
            found = read_corpus("-", format=formats[how[1]], **options[how[0] % 6])
        assert found.n_tokens > 0
        assert found.offsets[-1] == found.n_tokens == len(found.lines)
        assert (found.lengths > 0).all()
        json.dumps([found.place(0), repr(found), *found.vocabulary]).encode()
        if found.labelled:
            json.dumps(inspect(found).to_json(), ensure_ascii=False).encode()
        assert time.process_time() - started < 1 + len(data) / 10_000

    n = len(formats)
    seeds = [bytes([k * n + f]) + rows for k in range(6) for f in range(n) for rows in ROWS]
    return Target(run, seeds, WORDS)


def vectors(home: Path) -> Target:
    from rankone import read_vectors

    path = home / "vectors"
    seeds = [b"2 2\na 1 2\nrose 3e-3 4\n", b"a\t1\n\xc2\xa0 2\nrose 3\n", b"a 1 nan\nrose inf 1\n"]
    return Target(_file(path, lambda: read_vectors(path, ("a", "rose"))), seeds, JSON)


def model(home: Path) -> Target:
    """A model directory, in our layout, with one file of it changed."""
    from rankone import load, memorize

    memorize([(["a", "rose"], ["X", "Y"]), (["rose", "a"], ["X", "Y"])]).save(home / "model")
    return _directory(home / "model", lambda: load(home / "model").predict([["a", "other"]]))


def gated(home: Path) -> Target:
    """The directory of an editable model with one file changed, changed further if it can be."""
    from rankone import learn, load, memorize

    sentences = [(["a", "rose"], ["X", "Y"]), (["rose", "a"], ["X", "Y"]), (["a"], ["Y"])]
    memorize(sentences, construction="gated", editable=True).save(home / "gated")

    def run() -> None:
        found = load(home / "gated")
        found.predict([["a", "other"], ["rose", "a"]])
        learn(found, [(["a", "a"], ["Y", "X"])])

    return _directory(home / "gated", run)


def recite(home: Path) -> Target:
    """A model of the next token with one file changed, the fingerprints of its contexts among them,
    that goes on from a prompt and recites its text."""
    from rankone import Corpus, check_recitation, load, memorize
    from rankone import recite as go_on

    texts = ["a rose is a rose", "a rose is red"]
    memorize(Corpus.from_texts(texts, window=3)).save(home / "recite")

    def run() -> None:
        found = load(home / "recite")
        said = go_on(found, "a rose", 20, force=True)
        json.dumps(said.to_json()).encode()
        json.dumps(check_recitation(found, texts).to_json()).encode()

    return _directory(home / "recite", run)


def exact(home: Path) -> Target:
    """A directory of an exact model with one file changed, certified if it can be loaded."""
    from rankone import Corpus, certify, compare, load_exact

    corpus = Corpus.from_sentences([(["a", "rose"], ["X", "Y"]), (["rose", "is"], ["X", "Y"])])
    (row,) = compare(corpus, constructions=["kim2023"]).rows
    assert row.model is not None
    row.model.save(home / "exact")

    def run() -> None:
        certify(load_exact(home / "exact"), corpus, cap=60, seconds=2)

    return _directory(home / "exact", run)


def hub(home: Path) -> Target:
    """The same in the layout of Hugging Face."""
    from rankone import export_hf, load, memorize

    made = memorize([(["a", "rose"], ["X", "Y"]), (["rose", "a"], ["X", "Y"])]).model
    export_hf(made, home / "hub")
    for path in (home / "hub").iterdir():
        if path.suffix not in (".json", ".safetensors"):
            path.unlink()
    return _directory(home / "hub", lambda: load(home / "hub").predict([["a", "other"]]))


def certificate(home: Path) -> Target:
    """A certificate that is read, and if it can be read checked against its model and corpus."""
    from rankone import certify, memorize, read_corpus
    from rankone.certification import check_certificate, read_certificate

    path, toy = home / "certificate.json", read_corpus("toy")
    made = memorize(toy).model
    certify(made, toy).save(path)
    seeds = [path.read_bytes()]

    def check() -> None:
        found = read_certificate(path)
        json.dumps(found.to_json()).encode()
        if found.cap <= 1000:  # a larger one may rightly take its time
            check_certificate(found, made, toy)

    return Target(_file(path, check), seeds, JSON)


def checkpoint(home: Path) -> Target:
    """A run that is resumed from a checkpoint that was edited and renamed to its hash."""
    from rankone import Settings, read_corpus, train

    settings, toy = Settings(epochs=1, dim=2), read_corpus("toy")
    train(toy, settings, out=home / "run")
    whole = {path.name: path.read_bytes() for path in (home / "run").iterdir() if path.is_file()}
    names = [name for name in whole if name.startswith("checkpoint-")]

    def run(data: bytes) -> None:
        shutil.rmtree(home / "run")
        (home / "run").mkdir()
        for name, content in whole.items():
            if name not in names:
                (home / "run" / name).write_bytes(content)
        digest = sha256(data).hexdigest()[:16]
        (home / "run" / f"checkpoint-000000001-{digest}.safetensors").write_bytes(data)
        train(toy, settings, out=home / "run", resume=True)

    return Target(run, [whole[name] for name in names], JSON)


def approximation(home: Path) -> Target:
    """The network and the report that approximate wrote."""
    from rankone import approximate, load_approximation

    where = home / "approximation"
    approximate("nearest", n=2, grid=2).save(where)
    return _directory(where, lambda: load_approximation(where))


def _audited(home: Path) -> Any:
    """A small audit with all kinds of findings, of a file next to another split."""
    from rankone import inspect

    (home / "train.conll").write_bytes(b"Ann B-PER\nruns O\n\nAnn O\nruns O\n\nBob B-PER\n")
    (home / "dev.conll").write_bytes(b"Bob O\n\nann B-PER\nruns O\n")
    return inspect(home / "train.conll", against=home / "dev.conll", suspects=3)


def rows(home: Path) -> Target:
    """A table of findings that a person has marked, and the file with what was accepted; the first
    byte chooses the layout."""
    from dataclasses import replace

    from rankone.audit.apply import apply
    from rankone.audit.rows import read_rows, rows_of_audit, write_rows

    layouts = ("rows.csv", "rows.tsv", "rows.jsonl")
    found = [replace(row, accept="x") for row in rows_of_audit(_audited(home))]
    seeds = []
    for i, name in enumerate(layouts):
        for some in (found, found[:1]):
            write_rows(some, home / name)
            seeds.append(bytes([i]) + (home / name).read_bytes())

    def run(data: bytes) -> None:
        chosen, data = (data[0], data[1:]) if data else (0, b"")
        path = home / layouts[chosen % len(layouts)]
        path.write_bytes(data)
        for row in read_rows(path):
            json.dumps(vars(row) if hasattr(row, "__dict__") else str(row), default=str).encode()
        apply(home / "train.conll", path)

    return Target(run, seeds, (*WORDS, "accept", "proposal", "B-PER"))


def baseline(home: Path) -> Target:
    """An earlier audit, and what is new since."""
    from rankone.audit.baseline import Baseline
    from rankone.audit.gate import Gate

    path, audit = home / "baseline.json", _audited(home)
    gate = Gate.parse("leaks,near-leaks,conflicts,duplicates,suspects>0.1")
    seeds = [json.dumps(audit.to_json()).encode()]
    return Target(_file(path, lambda: gate.failures(audit, Baseline.read(path))), seeds, JSON)


def probabilities(home: Path) -> Target:
    """The probabilities of a model; the first byte chooses the layout."""
    import numpy as np

    from rankone import Corpus
    from rankone.audit import read_probabilities

    corpus = Corpus.from_sentences([(["a", "rose"], ["X", "Y"]), (["is"], ["X"])])
    np.savez(home / "p.npz", probabilities=np.full((3, 2), 0.5), labels=np.array(["X", "Y"]))
    lines = (
        b'{"labels": ["X", "Y"], "probabilities": [[0.5, 0.5], [1, 0]]}\n'
        b'{"probabilities": [[0.25, 0.75]]}\n'
    )
    named = b'{"probabilities": [{"X": 1}, {"Y": 1.0}]}\n{"probabilities": [{"X": 1, "Y": 0}]}\n'
    seeds = [b"\0" + (home / "p.npz").read_bytes(), b"\1" + lines, b"\1" + named]

    def run(data: bytes) -> None:
        chosen, data = (data[0], data[1:]) if data else (0, b"")
        path = home / ("p.npz", "p.jsonl")[chosen % 2]
        path.write_bytes(data)
        found = read_probabilities(path, corpus)
        assert found.shape == (3, 2)
        assert np.allclose(found.sum(axis=1), 1)

    return Target(run, seeds, JSON)


TARGETS: dict[str, Callable[[Path], Target]] = {
    "corpus": corpus,
    "vectors": vectors,
    "model": model,
    "gated": gated,
    "recite": recite,
    "exact": exact,
    "hub": hub,
    "certificate": certificate,
    "checkpoint": checkpoint,
    "approximation": approximation,
    "rows": rows,
    "baseline": baseline,
    "probabilities": probabilities,
}


def _file(path: Path, read: Callable[[], object]) -> Run:
    def run(data: bytes) -> None:
        path.write_bytes(data)
        read()

    return run


def _directory(where: Path, read: Callable[[], object]) -> Target:
    """The first byte chooses the file, the rest is what it holds."""
    whole = {path.name: path.read_bytes() for path in sorted(where.iterdir()) if path.is_file()}
    names = list(whole)

    def run(data: bytes) -> None:
        name, data = (names[data[0] % len(names)], data[1:]) if data else (names[0], b"")
        (where / name).write_bytes(data)
        try:
            read()
        finally:
            (where / name).write_bytes(whole[name])

    return Target(run, [bytes([i]) + whole[name] for i, name in enumerate(names)], JSON)


def kept(run: Run) -> Run:
    """The promise: no other error than ours."""
    from rankone import RankOneError

    def one(data: bytes) -> None:
        try:
            run(data)
        except RankOneError as error:
            str(error).encode()
            if not error.remedy:
                raise AssertionError("an error without a remedy") from error

    return one


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0: another one every time")
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--replay", type=Path, help="run one file and leave")
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.home:
        return fuzz(given)
    with tempfile.TemporaryDirectory() as home:
        if given.replay:
            kept(TARGETS[given.target](Path(home)).run)(given.replay.read_bytes())
            return 0
        # The fuzzer ends its process without cleaning up, so it gets one of its own.
        return subprocess.run([sys.executable, *sys.argv, "--home", home]).returncode


def fuzz(given: argparse.Namespace) -> int:
    """Fuzz until the time is over or something is found, which ends the process."""
    try:
        import atheris
    except ImportError:
        sys.exit("fuzzing needs atheris\n  remedy: pip install atheris")
    # What numba compiles cannot be instrumented.
    source = Path(__file__).parents[1] / "src"
    loops = ("rankone/kernels/**/*.py", "rankone/audit/suspects/*.py")
    files = (path.relative_to(source) for pattern in loops for path in source.glob(pattern))
    compiled = [".".join(path.with_suffix("").parts) for path in files]
    with atheris.instrument_imports(include=["rankone"], exclude=compiled):
        target = TARGETS[given.target](given.home)
    seeds, words = given.home / "seeds", given.home / "words"
    seeds.mkdir()
    for i, seed in enumerate(target.seeds):
        (seeds / str(i)).write_bytes(seed)
    words.write_text("".join(f'"{word}"\n' for word in target.words))
    given.findings.mkdir(exist_ok=True)
    flags = {
        "max_total_time": given.seconds,
        "seed": given.seed,
        "dict": words,
        "timeout": 60,
        "keep_seed": 1,  # a sound file of each kind, though all of them run the same lines
        "max_len": 1 << 14,
        "rss_limit_mb": 4096,
        "artifact_prefix": f"{given.findings}/{given.target}-",
        "print_final_stats": 1,
    }
    settings = [f"-{name}={value}" for name, value in flags.items()]
    atheris.Setup([sys.argv[0], *settings, str(seeds)], kept(target.run))
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
