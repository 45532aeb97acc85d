import json

import numpy as np
import pytest

from asgat.data import load_dataset


def direct_deepwalk(window=10, negative=1):
    """log max(vol/(bK) (P + … + P^K) D^-1, 1) of the karate club, from A and D alone."""
    a = load_dataset("karate").graph.adjacency.toarray()
    walk = a / a.sum(axis=1, keepdims=True)
    walks = sum(np.linalg.matrix_power(walk, r) for r in range(1, window + 1)) / a.sum(axis=1)
    return np.log(np.maximum(a.sum() / (negative * window) * walks, 1.0))


def test_embed_writes_the_factorised_matrix_and_its_factors(asgat, cells, place):
    code, output, _ = asgat("embed", "karate", "--json", "numbers.json")
    assert code == 0
    assert "embedding: runs/karate-embedding.npz" in output
    with np.load(place / "runs/karate-embedding.npz") as file:
        written = dict(file)
    direct = direct_deepwalk()
    np.testing.assert_allclose(written["matrix"], direct, atol=1e-9)
    left, singular, _ = np.linalg.svd(direct)
    gram = (left[:, :16] * singular[:16]) @ left[:, :16].T
    np.testing.assert_allclose(written["embedding"] @ written["embedding"].T, gram, atol=1e-9)
    assert written["node"].tolist() == list(range(34))
    numbers = json.loads((place / "numbers.json").read_text())
    assert (numbers["dataset"], numbers["nodes"], numbers["dimensions"]) == ("karate", 34, 16)
    assert (numbers["window"], numbers["negative"], numbers["seed"], numbers["zero_rows"]) == (10, 1, 0, 0)
    assert [row["singular_value"] for row in numbers["rows"]] == pytest.approx(singular[:16].tolist())
    energy = (singular[:16] ** 2).sum() / (singular**2).sum()
    assert numbers["energy"] == pytest.approx(energy)
    assert numbers["file"] == "runs/karate-embedding.npz"
    assert ["34", "0", "0", "16", "10", f"{100 * energy:.1f} %"] in cells(output)


def test_embed_uses_its_options_and_is_reproducible(asgat, place):
    options = ["--dimensions", "3", "--window", "2", "--negative", "5", "--seed", "7"]
    for name in ("[one].csv", "two.csv"):
        code, output, _ = asgat("embed", "karate", *options, "-o", name)
        assert code == 0
        assert f"embedding: {name}" in output
    assert (place / "[one].csv").read_bytes() == (place / "two.csv").read_bytes()
    lines = (place / "two.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == ("node,x0,x1,x2", 35)
    vectors = np.array([[float(cell) for cell in line.split(",")[1:]] for line in lines[1:]])
    singular = np.linalg.svd(direct_deepwalk(2, 5), compute_uv=False)
    np.testing.assert_allclose(vectors.T @ vectors, np.diag(singular[:3]), atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["karat"], ["'karat'", "Did you mean 'karate'?"]),
        (["karate", "--dimensions", "35"], ["34 nodes", "not 35"]),
        (["karate", "--dimensions", "0"], ["34 nodes", "not 0"]),
        (["karate", "--window", "0"], ["window", "at least 1", "0"]),
        (["karate", "--negative", "-2"], ["negative must be positive", "-2"]),
        (["karate", "-o", "vectors.txt"], [".npz, .npy, .csv, .tsv", "'vectors.txt'"]),
        (["karate", "-o", "vectors"], ["'vectors'"]),
        (["karate", "-o", "/dev/null/vectors.npz"], ["/dev/null/vectors.npz cannot be written"]),
        (["karate", "--json", "/dev/null/numbers.json"], ["/dev/null/numbers.json cannot be written"]),
    ],
)
def test_embed_refuses_bad_input_in_a_sentence(refused, arguments, parts):
    sentence = refused("embed", *arguments)
    for part in parts:
        assert part in sentence


def test_embed_refuses_a_graph_too_large_for_memory(refused, monkeypatch):
    monkeypatch.setattr("asgat.nn.connections.available_memory", lambda: 1000)
    assert "34 × 34" in refused("embed", "karate")
