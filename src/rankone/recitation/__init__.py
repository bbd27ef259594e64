"""Reciting: a model goes on from a prompt, token by token."""
