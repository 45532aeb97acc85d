import pytest

from asgat.data import dataset_names
from asgat.nn.registry import MODELS
from reproduce import paper


def test_tables_are_complete_except_for_cells_the_paper_leaves_empty():
    assert set(paper.DATASETS) <= set(dataset_names())
    for table, empty in ((paper.MICRO, 5), (paper.MACRO, 5 + 2 + 2 + 1 + 5)):
        assert set(table) <= {*MODELS, "geom-gcn"}
        assert len(table) == 13
        assert sum(map(len, table.values())) == 13 * 8 - empty
    assert {name: len(row) for name, row in paper.HEAT.items()} == {"asgat-heat-exact": 3, "asgat-heat": 6}


@pytest.mark.parametrize(
    ("table", "model", "dataset", "score"),
    [
        (paper.MICRO, "gcn", "cora", (0.874, 0.002)),
        (paper.MICRO, "asgat-cheb", "texas", (0.851, 0.057)),
        (paper.MICRO, "asgat-arma", "squirrel", (0.514, 0.032)),
        (paper.MICRO, "asgat-exact", "wisconsin", (0.869, 0.042)),
        (paper.MICRO, "geom-gcn", "texas", (0.676, None)),
        (paper.MACRO, "asgat-cheb", "citeseer", (0.793, 0.006)),
        (paper.MACRO, "mlp", "texas", (0.617, 0.152)),
        (paper.HEAT, "asgat-heat", "texas", (0.586, 0.058)),
        (paper.HEAT, "asgat-heat-exact", "wisconsin", (0.541, 0.051)),
        (paper.PROGRAM, "asgat-cheb", "chameleon", (0.654, 0.074)),
        (paper.PROGRAM, "asgat-exact", "cornell", (0.735, None)),
    ],
)
def test_cells_are_the_printed_ones(table, model, dataset, score):
    assert table[model][dataset] == score


def test_scores_are_fractions():
    for table in (paper.MICRO, paper.MACRO, paper.HEAT, paper.PROGRAM, paper.DIRECTED, paper.HETEROPHILOUS):
        for row in table.values():
            assert all(
                0.15 < score.mean < 0.98 and (score.std is None or 0 < score.std < 0.2) for score in row.values()
            )
    assert all(0.4 < best < 0.98 for best in paper.BEST_PUBLISHED.values())


def test_heads_are_twelve_and_fourteen():
    for rows in paper.HEADS.values():
        assert {name: len(row) for name, row in rows.items()} == {"cora": 12, "citeseer": 14, "pubmed": 12}
        assert all(-0.06 < change <= 0 for row in rows.values() for change in row)
    assert paper.HEADS["keep"]["pubmed"][3] == -0.054


def test_doubtful_numbers_exist():
    tables = {"micro": paper.MICRO, "macro": paper.MACRO}
    assert all(dataset in tables[table][model] for table, dataset, model in paper.DOUBTFUL)
