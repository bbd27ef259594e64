"""The explorer: a page in which a model runs, with its corpus and its certificate."""
