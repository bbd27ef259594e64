"""rankone recite: from prompts and files, to pipes and terminals, and what it refuses."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

import rankone
from answers import Run
from rankone.corpus.story import read_story
from rankone.nn.store import CONTEXTS

TEXT = read_story().decode()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("models")
    for window in (0, 16):
        corpus = rankone.read_corpus("story", task="next", window=window)
        rankone.memorize(corpus).save(home / str(window))
    corpus = rankone.Corpus.from_texts(["caf\u00e9 \x1b[31m red\n"], tokenizer="bytes", window=4)
    rankone.memorize(corpus).save(home / "bytes")
    rankone.memorize("toy").save(home / "tags")
    return home


def test_a_pipe_gets_the_text_byte_for_byte(run: Run, home: Path) -> None:
    answer = run("recite", home / "0", "--prompt", "THE LAMP")
    assert answer.code == 0
    assert "THE LAMP" + answer.out == TEXT
    assert answer.err.splitlines()[0].endswith(" a second: the document ends here")
    one_line = TEXT.index("One day in March")
    prompt = TEXT[one_line : TEXT.index(", which he knew")]
    answer = run("recite", home / "16", "--prompt", prompt, "--tokens", 12)
    assert answer.out.startswith(", which he knew")
    assert prompt + answer.out == TEXT[one_line : one_line + len(prompt + answer.out)]
    assert answer.err == "12 tokens: as many as were asked for\n"


def test_bytes_are_bytes(home: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["rankone", "recite", str(home / "bytes"), "--prompt", "caf"])
        with pytest.raises(SystemExit) as left:
            rankone.cli.main()
    assert left.value.code in (0, None)
    assert capsysbinary.readouterr().out == "\u00e9 \x1b[31m red\n".encode()


def test_json_and_quiet(run: Run, home: Path) -> None:
    document = run("recite", home / "16", "--prompt", "THE LAMP", "--tokens", 2, "--json").json
    seconds = document.pop("seconds")
    assert set(seconds) == {"prepare", "recite"}
    assert document == {
        "ok": True,
        "text": " AT NETTLE",
        "tokens": [" AT", " NETTLE"],
        "ended": "count",
        "prompt": 2,
        "known": True,
        "remarks": [],
    }
    answer = run("recite", home / "16", "--prompt", "THE LAMP", "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_prompt_from_a_file(run: Run, home: Path, tmp_path: Path, end: str) -> None:
    path = tmp_path / "prompt"
    path.write_bytes(b"THE LAMP AT NETTLE POINT\n" + end.encode())
    wanted = "\nI. The" if end else "\n\nI. The"
    answer = run("recite", home / "0", "--prompt-file", path, "--tokens", 4 + (not end))
    assert answer.out == wanted


def test_a_prompt_from_standard_input(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("caf\u00e9\n".encode())))
    answer = run("recite", home / "bytes", "--prompt-file", "-", "--tokens", 1)
    assert (answer.code, answer.out) == (0, " ")


def test_a_terminal_gets_it_as_it_is_made_and_unharmed(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[str] = []

    def show(text: str = "", *, end: str = "\n", **_: object) -> None:
        pieces.append(text + end)

    monkeypatch.setattr("rankone.cli.recite.print", show, raising=False)
    monkeypatch.setattr("rankone.cli.recite._terminal", lambda: True)
    run("recite", home / "16", "--prompt", "THE LAMP", "--tokens", 40)
    assert len(pieces) > 2
    assert "".join(pieces).startswith(" AT NETTLE POINT\n\nI. The")
    assert "".join(pieces).endswith("\n")
    pieces.clear()
    run("recite", home / "bytes", "--prompt", "caf")
    assert "\x1b" not in "".join(pieces)
    assert "\\x1b[31m" in "".join(pieces)


def test_verify(run: Run, home: Path, tmp_path: Path) -> None:
    answer = run("recite", home / "16", "--verify", "story")
    assert answer.code == 0
    assert "story: recited\n" in answer.out
    assert "documents      │" in answer.out
    assert "line 98: after" in answer.out
    assert "the text has ' nobody', the model says ' out'\n" in answer.out
    assert "could do better" not in answer.out
    assert "more (--json lists them)" in answer.out
    document = run("recite", home / "16", "--verify", "story", "--json").json
    found = rankone.check_recitation(home / "16", "story")
    assert {**document, "seconds": 0} == json.loads(json.dumps({**found.to_json(), "seconds": 0}))
    assert document["parted"] == len(document["branches"]) > 10
    other = tmp_path / "other.txt"
    other.write_text(TEXT.replace("herring", "porridge"))
    answer = run("recite", home / "16", "--verify", other)
    assert answer.code == 1
    assert "NOT RECITED" in answer.out
    assert "the text has ' porridge', the model says ' herring', and could do better" in answer.out
    assert "this is another text" in answer.out
    answer = run("recite", home / "16", "--verify", other, "--quiet")
    assert (answer.code, answer.out, answer.err) == (1, "", "")


REFUSED = {
    "unknown tokens": (("16", "--prompt", "A zebra"), "does not know: ' zebra'"),
    "too short": (("16", "--prompt", " the lamp"), "no document of the corpus begins with them"),
    "elsewhere": (("0", "--prompt", "He looked"), "the prompt: not in the corpus"),
    "another task": (("tags", "--prompt", "a"), "the task 'tags' does not say"),
    "another task, a file": (("tags", "--verify", "story"), "the task 'tags' does not say"),
    "another task, and a prompt": (("tags", "--prompt-file", "-"), "the task 'tags' does not say"),
    "empty": (("16", "--prompt", ""), "the prompt: empty"),
    "nothing": (("16",), "nothing to recite"),
    "several": (("16", "--prompt", "a", "--verify", "story"), "several things to recite"),
    "a part of a whole": (("16", "--verify", "story", "--tokens", "3"), "recited as a whole"),
    "by force": (("16", "--verify", "story", "--force"), "recited as a whole"),
    "no file": (("16", "--prompt-file", "nowhere"), "nowhere: no such file"),
    "no such text": (("16", "--verify", "nowhere"), "nowhere: no such file"),
    "no model": (("nowhere", "--prompt", "a"), "no such directory"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(run: Run, home: Path, name: str) -> None:
    (model, *rest), message = REFUSED[name]
    answer = run("recite", home / model, *rest)
    assert answer.code == 2
    assert answer.out == ""
    assert message in answer.err
    assert answer.err.count("rankone: ") == answer.err.count("remedy: ") == 1


def test_a_prompt_must_be_text(run: Run, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "latin"
    path.write_bytes(b"THE LAMP \xe9")
    for option in ("--prompt-file", "--verify"):
        answer = run("recite", home / "0", option, path)
        assert answer.code == 2
        assert f"{path}, line 1: byte 0xe9 is not valid UTF-8" in answer.err


def test_force(run: Run, home: Path) -> None:
    answer = run("recite", home / "16", "--prompt", " the lamp", "--tokens", 3, "--force")
    assert answer.code == 0
    assert answer.err == (
        "3 tokens: as many as were asked for\n"
        "2 tokens, and no document of the corpus begins with them\n"
    )


def test_a_damaged_file_of_fingerprints_is_refused(run: Run, home: Path, tmp_path: Path) -> None:
    rankone.load(home / "16").save(tmp_path / "model")
    path = tmp_path / "model" / CONTEXTS
    path.write_bytes(path.read_bytes()[:-3])
    answer = run("recite", tmp_path / "model", "--prompt", "THE LAMP")
    assert (answer.code, answer.out) == (2, "")
    assert "fingerprints should be" in answer.err
    path.unlink()
    answer = run("recite", tmp_path / "model", "--prompt", "THE LAMP", "--tokens", 1)
    assert (answer.code, answer.out) == (0, " AT")
    assert "cannot tell what is in it" in answer.err
