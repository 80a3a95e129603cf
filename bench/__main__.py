"""Run every benchmark and print one table: the goals, the measured values, and what they are compared with.

    python -m bench [--quick] [--only NAME ...] [--memories N] [--json FILE]

Figures belong to the machine and the moment; the JSON states both.  docs/benchmarks.md lists what each one compares.
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module

import bench
from bench import harness

MODULES = sorted(module.name for module in pkgutil.iter_modules(bench.__path__))


def main() -> None:
    modules = {name: import_module(f"bench.{name}") for name in MODULES if name != "__main__"}
    benchmarks = {name: module.rows for name, module in modules.items() if hasattr(module, "rows")}
    parser = harness.parser(__doc__ or "")
    parser.add_argument("--only", nargs="+", choices=list(benchmarks), metavar="NAME", help=", ".join(benchmarks))
    arguments = parser.parse_args()
    sys.exit(not harness.run({f"bench.{name}": benchmarks[name] for name in arguments.only or benchmarks}, arguments))


if __name__ == "__main__":
    main()
