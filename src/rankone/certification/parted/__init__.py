"""Certificates of corpora in parts: each part is evaluated alone, and contexts meet in buckets."""
