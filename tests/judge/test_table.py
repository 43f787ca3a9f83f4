"""Reading tables: every fault of the input is named, with its lines."""

import pytest
from judge_simulation import write_scores

from argus_edge.errors import InputError
from argus_edge.judge.scale import Scale
from argus_edge.judge.table import FLOOR, join_tables, name_lines, read_table


def edited(tmp_path, changes, **options):
    """Write a table with some cells changed: {(row, column): text}; row 0 is line 2 of the file."""

    def edit(table):
        for (row, column), text in changes.items():
            table[row][column] = text

    return write_scores(tmp_path / "edited.csv", 40, edit=edit, **options)


def problems(path, **options):
    return [str(problem) for problem in read_table(path, **options).problems]


def test_a_sound_table(scores):
    table = read_table(scores)
    assert (len(table), table.scale.levels, table.judges) == (300, 5, ["scores"])
    assert table.label_column == "human_score"
    assert table.problems == []
    assert table.probabilities.sum(axis=2) == pytest.approx(1)


@pytest.mark.parametrize("text", ["", "nan", "NaN"])
def test_missing_log_probabilities_are_named_and_not_used(tmp_path, text):
    path = edited(tmp_path, {(0, "logprob_2"): text, (7, "logprob_5"): text})
    assert any("2 rows without all log-probabilities: not used (lines 2, 9)" in p for p in problems(path))
    assert read_table(path).readable.sum() == 38


def test_minus_infinity_is_named_and_floored(tmp_path):
    path = edited(tmp_path, {(3, "logprob_1"): "-inf"})
    table = read_table(path)
    assert "1 row with a log-probability of -inf: put at -11.51 (line 5)" in str(table.problems[0])
    assert table.features[3, 0] == pytest.approx(FLOOR)
    assert read_table(path, floor=-20).features[3, 0] == -20


@pytest.mark.parametrize("text", ["0.5", "inf", "3"])
def test_what_is_no_log_probability_is_refused(tmp_path, text):
    with pytest.raises(InputError, match="at most 0") as caught:
        read_table(edited(tmp_path, {(1, "logprob_3"): text}))
    assert "line 3" in caught.value.where


def test_a_judge_score_of_minus_one_is_named(tmp_path):
    path = edited(tmp_path, {(0, "judge_score"): "-1", (2, "judge_score"): "", (4, "judge_score"): "9"})
    found = problems(path)
    assert any("2 rows without a readable judge score (-1)" in p and "lines 2, 4" in p for p in found)
    assert any("off the scale 1..5" in p and "line 6" in p for p in found)


@pytest.mark.parametrize("text", ["6", "0", "3.5", "-1"])
def test_human_scores_off_the_scale_are_refused_with_their_lines(tmp_path, text):
    with pytest.raises(InputError, match="not on the scale") as caught:
        read_table(edited(tmp_path, {(0, "human_score"): text, (9, "human_score"): text}))
    assert "lines 2, 11" in caught.value.where


def test_text_where_a_number_belongs_is_named(tmp_path):
    with pytest.raises(InputError, match="'good' is not a number") as caught:
        read_table(edited(tmp_path, {(5, "human_score"): "good"}))
    assert "line 7" in caught.value.where


def test_repeated_ids_are_named(tmp_path):
    assert any("repeat a sample_id" in p for p in problems(edited(tmp_path, {(5, "sample_id"): "0"})))


def test_another_scale_is_refused(scores):
    with pytest.raises(InputError, match=r"1\.\.5, not 1\.\.7"):
        read_table(scores, scale=Scale(7))


def test_labels_are_found_by_their_short_name(scores, tmp_path):
    assert read_table(scores, labels="human").label_column == "human_score"
    with pytest.raises(InputError, match="'nobody'") as caught:
        read_table(scores, labels="nobody")
    assert "human_score" in caught.value.next_step


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no rows"),
        ("task,human_score\na,3\n", "logprob_1"),
        ("logprob_1,logprob_3\n-1,-1\n", "logprob_1, logprob_3"),
        ("logprob_1,logprob_02,logprob_٣\n-1,-1,-1\n", "found: logprob_1\\."),
        ("logprob_1,logprob_2\n-1\n", "1 cells, the header 2"),
        ("logprob_1,logprob_1,logprob_2\n-1,-1,-1\n", "column twice"),
        ("logprob_1,logprob_2,judge\n-1,-1,a\n-1,-1,b\n", "mixes 2 judges"),
    ],
)
def test_files_that_are_no_table(tmp_path, text, why):
    path = tmp_path / "broken.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=why):
        read_table(path)


def test_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "image.csv"
    path.write_bytes(b"\xff\xd8\xff\xe0" * 10)
    with pytest.raises(InputError, match="UTF-8"):
        read_table(path)


def test_the_judge_of_a_file(tmp_path):
    path = write_scores(tmp_path / "a.csv", 20, judge="critic")
    assert read_table(path).judges == ["critic"]
    with pytest.raises(InputError, match="'critic', not 'other'"):
        read_table(path, judge="other")


def test_several_judges_are_joined_by_id(tmp_path):
    first = read_table(write_scores(tmp_path / "a.csv", 30, judge="a"))
    second = read_table(write_scores(tmp_path / "b.csv", 30, judge="b"))
    joined = join_tables([first, second.take(range(5, 30)[::-1])])
    assert (len(joined), joined.judges, joined.features.shape) == (25, ["a", "b"], (25, 10))
    assert joined.features[0].tolist() == [*first.features[5], *second.features[5]]
    assert any("not all judges have" in str(problem) for problem in joined.problems)


def test_judges_that_cannot_be_joined(tmp_path):
    first = read_table(write_scores(tmp_path / "a.csv", 30, judge="a"))
    other = read_table(write_scores(tmp_path / "b.csv", 30, seed=5, judge="b"))
    with pytest.raises(InputError, match="human scores differ"):
        join_tables([first, other])
    with pytest.raises(InputError, match="given twice"):
        join_tables([first, first])


def test_many_lines_are_cut_short():
    assert name_lines(range(1, 14)) == "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 3 more"


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_spreadsheets_other_separator_is_named(tmp_path, mark):
    path = tmp_path / "scores.csv"
    path.write_text(f"logprob_1{mark}logprob_2\n-1{mark}-2\n")
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert f"separated by {mark!r}" in caught.value.next_step
