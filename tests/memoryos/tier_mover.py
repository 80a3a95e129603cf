"""An agent in a process of its own: inserts pages and transfers those that leave, until it is done or is killed.

python tier_mover.py ROOT NAME COUNT: prints each page that was inserted, once it is durable.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

from jidomem.base.clock import new_id
from jidomem.errors import NotFound, RevisionConflict
from jidomem.extras.memoryos.config import MemoryOSConfig
from jidomem.extras.memoryos.retrieval import MaintenanceRun, maintain
from jidomem.extras.memoryos.segments import PageArrival, TierPolicy, choose_segment, insert, transfer
from jidomem.extras.memoryos.storage import TIER_TABLES, agent_tiers
from jidomem.extras.memoryos.values import DialoguePage
from jidomem.runtime.state import State

POLICY = TierPolicy(MemoryOSConfig(stm_capacity=2, mtm_capacity=3, segment_capacity=4))
START = datetime(2026, 11, 21, tzinfo=UTC)


def main(root, name, count):
    tiers = agent_tiers(State(Path(root), TIER_TABLES), "p", "ada", new_id)
    for number in range(int(count)):
        keywords = {f"topic {number % 5}"}
        page = DialoguePage(f"{name}-{number}", "ada", "?", "!", START, keywords=keywords)
        moved = tiers.update(lambda moved, page=page: insert(moved, page, POLICY)).memory
        print(page.id, flush=True)
        if moved.leaving:
            pass_on(tiers, moved.leaving[0].id)
        if number % 3 == 2:
            tiers.update(lambda moved: maintain(moved, MaintenanceRun(START), POLICY))


def pass_on(tiers, page_id):
    """Transfer a page, with a retry if another process changed its segment."""
    while True:
        current = tiers.get()
        try:
            placement = choose_segment(current, page_id, POLICY)
            pages = tuple(page.id for page in placement.pages)
            arrival = PageArrival(page_id, placement.segment_id or new_id(), "told", pages, START)
            tiers.update(lambda current, arrival=arrival: transfer(current, arrival, POLICY))
        except RevisionConflict:
            continue
        except NotFound:  # another process transferred it, and a third one archived its segment
            return
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
