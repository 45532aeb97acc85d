from asgat.experiments.micro import EXPERIMENT


def test_micro(run_quick):
    result, text, files = run_quick(EXPERIMENT)
    assert result["quick"] is True
    entry = result["karate"]
    assert set(entry) == {"asgat-cheb", "gcn", "chosen"}
    assert len(entry["gcn"]["per_run"]) == 2
    assert f"{100 * entry['gcn']['mean']:.1f} ±" in text
    assert [file.name for file in files] == ["micro.json", "micro.png"]
