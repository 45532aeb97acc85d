from asgat.config import OPTIONS
from asgat.experiments import paper
from asgat.experiments.heat import EXPERIMENT, PRINTED, ROWS
from asgat.experiments.training import config_of


def test_heat(carry_out):
    result, text, files = carry_out(EXPERIMENT)
    assert [row["form"] for row in result["rows"]] == list(ROWS)
    rooted = result["rows"][list(ROWS).index("heat + root")]
    scale = config_of("karate", "asgat-heat").to_dict()["heat_scale"]
    assert rooted["model"] == "asgat-plus"
    assert rooted["settings"] == {"filter": "heat", **dict.fromkeys(OPTIONS, False), "root": True, "heat_scale": scale}
    exact = result["rows"][0]
    assert exact["settings"] == {"operator": "exact"}
    assert all(len(row["per_run"]) == 2 for row in result["rows"])
    assert "heat + root" in text
    assert [file.name for file in files] == ["heat.json", "heat.png"]


def test_the_papers_rows():
    assert PRINTED["heat"]["chameleon"].mean == 0.631
    assert PRINTED["heat, exact"]["cornell"].mean == 0.589
    assert PRINTED["learned"] is paper.MICRO["asgat-cheb"]
