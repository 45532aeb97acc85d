"""Latent spaces: the nodes of a graph as points of a plane, and their neighbours there."""
