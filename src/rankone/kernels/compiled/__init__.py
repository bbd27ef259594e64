"""Attention on the CPU, compiled by numba; `rankone.kernels` has the map."""
