"""
Your first model
================

Text.
"""
import rankone
corpus = rankone.read_corpus("toy")
print(corpus)
