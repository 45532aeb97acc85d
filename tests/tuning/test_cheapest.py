from asgat.tuning.cheapest import cheapest


def row(trial, value, seconds, std=0.02, **more):
    return {"trial": trial, "value": value, "seconds": seconds, "std": std, **more}


def test_the_fastest_within_half_a_standard_error_of_the_best_is_taken():
    rows = [row(0, 0.800, 9.0), row(1, 0.7951, 3.0), row(2, 0.7949, 1.0), row(3, 0.799, 4.0)]
    assert cheapest(rows, runs=4)["trial"] == 1
    assert cheapest(rows, runs=3)["trial"] == 2, "fewer runs know less"
    rows[0]["std"] = 0.03
    assert cheapest(rows, runs=4)["trial"] == 2, "the spread of the best decides"


def test_without_a_spread_only_equal_scores_count():
    rows = [row(0, 0.8, 9.0), row(1, 0.8, 5.0), row(2, 0.7999, 1.0)]
    del rows[0]["std"]
    assert cheapest(rows, runs=10)["trial"] == 1


def test_of_equal_times_the_better_then_the_earlier_is_taken_and_errors_never():
    rows = [row(0, 0.8, 2.0), row(1, 0.799, 2.0), row(2, 0.8, 2.0), row(3, 0.8, 0.0, error="no memory")]
    assert cheapest(rows, runs=4)["trial"] == 0
    assert cheapest(rows[3:], runs=4)["trial"] == 3, "there is nothing else"
