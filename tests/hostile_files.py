"""Made-up files of columns with everything in them that a reader may meet."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = [
    "a",
    "I-X",
    "seven77",
    "eight888",
    "nine99999",
    "sixteen_letters_",
    "x" * 40,
    "-",
    "#",
    "é",
]
ODD = ["", " ", "\u00a0", "-DOCSTART-", "-DOCSTART- b", "-DOCSTART-b", "a b", " a", "a ", "\ufeff"]
ODD += ["\r", "a\r", "#c", "٣", "\u2028", "_"]
IDS = ["1", "2", "3", "4", "1-2", "1.1", "10", "0", "007", "1-", "-1", "9999999999", "999999999"]
CELLS = st.sampled_from(WORDS * 3 + ODD)
SEPARATORS = st.sampled_from([" ", "  ", "\t", " \t", "\t\t"])
ENDS = st.sampled_from(
    ["\n"] * 8 + ["\n\n", "\r\n", "\n\t\n", "\n \n", "\n\ufeff", "\n-DOCSTART- O\n"]
)


@st.composite
def columns(draw: st.DrawFn) -> str:
    """Lines of about as many cells each, mostly with one separator."""
    width, usual = draw(st.integers(1, 4)), draw(st.sampled_from([" ", "\t"]))
    text = draw(st.sampled_from(["", "", "", "\ufeff", "\n", "-DOCSTART- O\n\n", "form\tner\n"]))
    for _ in range(draw(st.integers(0, 12))):
        odd = draw(st.integers(0, 9)) == 0
        cells = [draw(CELLS) for _ in range(draw(st.integers(0, 5)) if odd else width)]
        text += (draw(SEPARATORS) if odd else usual).join(cells) + draw(ENDS)
    return text + draw(st.sampled_from(["", "a", "\r", "a\tb\r"]))


@st.composite
def conllu(draw: st.DrawFn) -> str:
    text = ""
    for i in range(draw(st.integers(0, 12))):
        odd = draw(st.integers(0, 9))
        id = draw(st.sampled_from(IDS)) if odd < 2 else str(i + 1)
        cells = [id, *(draw(CELLS) for _ in range(8 if odd == 2 else 9))]
        text += ("# c\n" if odd == 3 else " # c\n" if odd == 4 else "") + "\t".join(cells)
        text += draw(ENDS)
    return text
