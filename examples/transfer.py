"""A model fitted on one graph predicts another, unseen graph of another size.

Run it with: python examples/transfer.py
"""

from __future__ import annotations

import numpy as np

from asgat.data import contextual_sbm
from asgat.estimator.classifier import ASGATClassifier
from asgat.graph import Graph
from asgat.tabular.conversions import as_user_graph


def main(nodes: int = 900, epochs: int = 150) -> tuple[float, float]:
    # One large graph is divided into two without common nodes or edges: a third and two thirds of it.
    whole = contextual_sbm(nodes, signal=0.3, num_features=16)
    small, large = np.split(np.random.default_rng(0).permutation(nodes), [nodes // 3])
    graphs = [
        as_user_graph(Graph.from_scipy(whole.graph.adjacency[part][:, part]), whole.x[part]) for part in (small, large)
    ]
    model = ASGATClassifier(epochs=epochs).fit(graphs[0], whole.y[small])
    weights = sum(value.numel() for value in model.module_.parameters())
    print(f"fitted on {graphs[0].num_nodes} nodes: {weights:,} weights, none of them specific to a node")
    score = model.score(graphs[1], whole.y[large])
    guess = float(np.bincount(whole.y[large]).max() / len(large))
    print(f"{graphs[1].num_nodes} unseen nodes: accuracy {score:.1%}, by guessing {guess:.1%}")
    return score, guess


if __name__ == "__main__":
    main()
