"""Memorization of a corpus in parts: what each part does alone, and what is put together."""
