"""`jidomem` without the time that its start takes: each call is a fork of a process that has loaded the command line.

`program(folder)` puts a program `jidomem` into *folder*, `programs(folder)` puts that first on PATH too. It passes its
arguments, folder, environment and standard streams to the server, `python forked_jidomem.py SOCKET`, passes SIGINT and
SIGTERM on to the fork, and ends with its code.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from importlib import import_module

_CLIENT = """#!{python} -ISE
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({path!r})
    call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(call).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(call)
    fork = int(server.recv(9))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(fork, number))
    sys.exit(int(server.recv(9)))
"""


@contextmanager
def program(folder, *modules):
    """Write the program into *folder*, and serve its calls meanwhile; forks have *modules* loaded."""
    path = str(folder / "socket")
    with subprocess.Popen([sys.executable, __file__, path, *modules], stdout=subprocess.PIPE) as server:
        assert server.stdout.readline() == b"ready\n"
        client = folder / "jidomem"
        client.write_text(_CLIENT.format(python=sys.executable, path=path))
        client.chmod(0o755)
        try:
            yield
        finally:
            server.terminate()


@contextmanager
def first_on_path(folder):
    """Put *folder* on PATH."""
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


@contextmanager
def programs(folder):
    """Write the program into *folder*, put that on PATH, and serve its calls meanwhile."""
    with program(folder), first_on_path(folder):
        yield


def _received(connection):
    """Return the call that a client sends (arguments, folder and environment), and its standard streams."""
    head, streams, _, _ = socket.recv_fds(connection, 4, 3)
    with connection.makefile("rb") as call:
        return json.loads(call.read(int.from_bytes(head, "big"))), streams


def _run(connection, call, streams):
    """Run the call of a client in this process, and end it."""
    arguments, folder, environment = call
    connection.sendall(b"%-9d" % os.getpid())
    connection.close()
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
        os._exit(end.code or 0)


def _report_ends(*_):
    """Send the exit code of each fork that has ended to its client."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with clients.pop(ended[0]) as client, suppress(OSError):  # of a client that was killed
                client.sendall(b"%d" % os.waitstatus_to_exitcode(ended[1]))


if __name__ == "__main__":
    from jidomem.check import check  # noqa: F401  # the most of what the commands load
    from jidomem.check.reasoning import inconsistencies
    from jidomem.check.sources import TripleSource
    from jidomem.schema import ontology
    from jidomem_cli.main import main

    for module in sys.argv[2:]:
        import_module(module)
    clients = {}
    signal.signal(signal.SIGCHLD, _report_ends)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            try:
                call, streams = _received(connection)
            except (OSError, ValueError):  # of a client that was killed
                connection.close()
                continue
            if "check" in call[0]:
                inconsistencies(TripleSource([]), ontology.load())  # closes the ontology once for all forks
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # until the client of the fork is known
            if (fork := os.fork()) == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
                listening.close()
                _run(connection, call, streams)
            for stream in streams:
                os.close(stream)
            clients[fork] = connection
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
