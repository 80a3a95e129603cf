"""A process that runs each command line from standard input, and prints its result.

python user_process.py LARGE   # a line in: ["remember", "..."]; a line out: [exit code, output, errors]
"""

import json
import sys

from click.testing import CliRunner

from jidomem.index import follower
from jidomem_cli.main import cli

follower.ON_DISK_BYTES = int(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    result = CliRunner().invoke(cli, json.loads(line))
    print(json.dumps([result.exit_code, result.stdout, result.stderr]), flush=True)
