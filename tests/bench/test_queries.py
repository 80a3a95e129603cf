"""The benchmark of named queries: a row as soon as it is measured, of a root whose caches are used again."""

from bench import load, queries
from bench.frame import Options


def test_each_question_is_measured_in_turn_of_a_root_whose_search_file_stays(tmp_path):
    root, options = tmp_path / "root", Options(60, True, 1, tmp_path)
    load.build(root, 60)
    *each, slowest = queries.rows(options, root)
    file = root / "cache" / "text" / f"{load.PROJECT}.sqlite"
    made = file.stat().st_ino

    asked = queries.rows(options, root)
    assert next(asked).what == each[0].what
    asked.close()

    assert slowest.what == f"slowest of {len(each)} questions, limit 50, 60 memories"
    assert slowest.measured.partition(":")[0] in {row.what for row in each}
    assert file.stat().st_ino == made
