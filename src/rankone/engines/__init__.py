"""Engines: what runs functions over the parts of a corpus, and where the parts are meanwhile.

An engine knows nothing of corpora. It runs functions from tables to tables and keeps what they
return: in this process (`here`), in files of a scratch directory (`disk`), or on the machines of a
cluster (`ray`). What is computed does not depend on it.
"""

from rankone.engines.engine import Engine, Ref, Shared, Table
from rankone.engines.open import open_engine

__all__ = ["Engine", "Ref", "Shared", "Table", "open_engine"]
