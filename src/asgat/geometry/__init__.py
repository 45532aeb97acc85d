"""Latent spaces: the nodes of a graph as points of a plane, and who is near whom there."""
