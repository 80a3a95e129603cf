"""A process that appends with others: python contender.py MODULE:CLASS ADDRESS NAME COUNT prints its numbers."""

import sys
from importlib import import_module

from log_contract import contend

if __name__ == "__main__":
    kind, address, name, count = sys.argv[1:]
    module, _, which = kind.partition(":")
    log = getattr(import_module(module), which)(address)
    print(*contend(log, name, int(count)))
    log.close()
