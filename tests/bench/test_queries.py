"""The benchmark of named queries: it yields each row when measured, and reuses the caches of the root."""

from bench import load, queries
from bench.harness import Options


def test_named_queries_are_measured_one_by_one_with_the_same_search_file(tmp_path):
    root, options = tmp_path / "root", Options(60, True, 1, tmp_path)
    load.build(root, 60)
    *each, slowest = queries.rows(options, root)
    file = root / "cache" / "text" / f"{load.PROJECT}.sqlite"
    inode = file.stat().st_ino

    measured = queries.rows(options, root)
    assert next(measured).label == each[0].label
    measured.close()

    assert slowest.label == f"slowest of {len(each)} named queries, limit 50, 60 memories"
    assert slowest.measured.partition(":")[0] in {row.label for row in each}
    assert file.stat().st_ino == inode
