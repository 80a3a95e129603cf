"""The scenarios: the same seeded workload for every system, each a function `(open, folder, size)` with figures."""

from bench.governance.scenarios.erasure import erasure
from bench.governance.scenarios.keeping import contradictions, duplicates
from bench.governance.scenarios.lost_writes import lost_writes
from bench.governance.scenarios.past import as_of, provenance, undo
from bench.governance.scenarios.staleness import staleness

SCENARIOS = {
    each.__name__: each
    for each in (lost_writes, duplicates, contradictions, staleness, undo, as_of, provenance, erasure)
}
