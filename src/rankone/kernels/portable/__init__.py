"""Attention on any device, in torch operations; `rankone.kernels` has the map."""
