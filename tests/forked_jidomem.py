"""`jidomem` without the time that its start takes: each call is a fork of a process that has loaded the command line.

`programs(folder)` puts a program `jidomem` into *folder*, the first on PATH. It passes its arguments, folder,
environment and standard streams to the server, `python forked_jidomem.py SOCKET`, and ends with the code of the fork.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress

_CLIENT = """#!{python} -ISE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(call).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(call)
    sys.exit(int(server.recv(9)))
"""


@contextmanager
def programs(folder):
    """Write the program into *folder*, put that on PATH, and serve its calls meanwhile."""
    path = str(folder / "socket")
    with subprocess.Popen([sys.executable, __file__, path], stdout=subprocess.PIPE) as server:
        assert server.stdout.readline() == b"ready\n"
        program = folder / "jidomem"
        program.write_text(_CLIENT.format(python=sys.executable, path=path))
        program.chmod(0o755)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
        try:
            yield
        finally:
            os.environ["PATH"] = before
            server.terminate()


def _run(connection):
    """Run the call that a client sends, in this process, and send its exit code."""
    head, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as call:
        arguments, folder, environment = json.loads(call.read(int.from_bytes(head, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        sys.argv[1:] = arguments
        main()
    except SystemExit as end:
        sys.stdout.flush()
        connection.sendall(str(end.code or 0).encode())


if __name__ == "__main__":
    from jidomem.check import check  # noqa: F401  # the most of what the commands load
    from jidomem_cli.main import main

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            if os.fork() == 0:
                listening.close()
                _run(connection)
                os._exit(0)
            connection.close()
