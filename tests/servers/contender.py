"""A process that appends with others: python contender.py MODULE:CLASS ADDRESS NAME COUNT prints its numbers."""

import sys
from importlib import import_module

from log_contract import contend

if __name__ == "__main__":
    kind, address, name, count = sys.argv[1:]
    module, _, class_name = kind.partition(":")
    log = getattr(import_module(module), class_name)(address)
    print(*contend(log, name, int(count)))
    log.close()
