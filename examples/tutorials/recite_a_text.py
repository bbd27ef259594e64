"""
Recite a text
=============

With the task ``next``, the label of every token is the token that follows. A model that gets
every label right recites the text from any place, one token after the other.
"""

import matplotlib.pyplot as plt

import rankone

story = rankone.read_corpus("story", task="next")
audit = rankone.inspect(story)
print(f"{audit.tokens} tokens, {audit.vocabulary} different ones")

# %%
# How far back must it look?
# --------------------------
#
# With a short window a passage that comes back and goes on in two ways cannot be told from itself.
# The longer the window, the more is determined. The audit counts what is left, and finds the
# passage that needs the longest one.

figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
windows = [each for each in audit.text.ceilings if each.context == "window"]
sizes = [each.window for each in windows]
axis.plot(sizes, [each.errors / each.tokens for each in windows], "o-", color="#4477aa")
axis.set(xscale="log", xlabel="window (tokens)", ylabel="unavoidable errors", ylim=(0, None))
axis.set_xticks(sizes, map(str, sizes))
axis.set_xticks([], minor=True)
axis.yaxis.set_major_formatter("{x:.0%}")
axis.axvline(audit.text.enough, color="grey", ls=":", label="nothing is gained beyond")
axis.legend(frameon=False)
limit = audit.text.limit
print(f"a passage of {limit.length} tokens goes on in different ways:", limit.continuations)

# %%
# Memorise it
# -----------

corpus = rankone.read_corpus("story", task="next", window=16)
result = rankone.memorize(corpus)
print(f"{result.wrong} wrong, {result.unavoidable} unavoidable")
print(f"cross-entropy {result.bits:.4f} bits per token: the least that any model can have")

# %%
# Recite it
# ---------

found = rankone.recite(result.model, "THE LAMP AT NETTLE POINT", tokens=60)
print(found.text)

# %%
# A prompt that the text does not hold is refused, rather than answered with an invention.

try:
    rankone.recite(result.model, "It was a dark and stormy night in")
except rankone.RankOneError as error:
    print(error)

# %%
# All of it, checked: every document from its first token, and where the model parts from the
# text, whether any other choice would have been better.

check = rankone.check_recitation(result.model, corpus)
print(check)
for branch in check.branches[:3]:
    print(
        f"line {branch.line}: after {branch.before!r} the text has {branch.text!r}, "
        f"the model says {branch.said!r}"
    )
