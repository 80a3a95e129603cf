"""Run every benchmark and print one table: what we promise, what was measured, beside what.

    python -m bench [--quick] [--only NAME ...] [--memories N] [--json FILE]

Figures belong to the machine and the moment; the JSON says which.  docs/benchmarks.md says what each one compares.
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module

import bench
from bench import frame

NAMES = sorted(module.name for module in pkgutil.iter_modules(bench.__path__))


def main() -> None:
    modules = {name: import_module(f"bench.{name}") for name in NAMES if name != "__main__"}
    benchmarks = {name: module.rows for name, module in modules.items() if hasattr(module, "rows")}
    parser = frame.parser(__doc__ or "")
    parser.add_argument("--only", nargs="+", choices=list(benchmarks), metavar="NAME", help=", ".join(benchmarks))
    arguments = parser.parse_args()
    sys.exit(not frame.run({f"bench.{name}": benchmarks[name] for name in arguments.only or benchmarks}, arguments))


if __name__ == "__main__":
    main()
