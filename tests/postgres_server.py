"""A private PostgreSQL server of the Debian package: on a free port, in its own folder; it ends with its parent."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from time import sleep

from tests.ports import free_port

FOUND = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
BINARIES = FOUND[-1].parent if FOUND else None
USER, PASSWORD = "jido", "s3cret-of-jido"
#: Nothing is forced to the disk: these tests end processes, not machines.
QUICK = {"fsync": "off", "full_page_writes": "off"}
_SET = {
    "listen_addresses": "127.0.0.1", "shared_buffers": "16MB", "max_connections": "60", "autovacuum": "off",
    "log_min_messages": "fatal", "wal_level": "replica", "max_wal_senders": "4", "jit": "off",
    "max_wal_size": "256MB", "bgwriter_delay": "10s", "wal_writer_delay": "10s",
}  # fmt: skip


def as_postgres(*command, dies_with_us=False):
    """Return *command* run as a user who may run PostgreSQL; root may not."""
    words = ["setpriv"]
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        words += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return [*words, *(["--pdeathsig", "QUIT"] if dies_with_us else []), *map(str, command)]


class Server:
    """One server; `url` is that of its database `memory`, `address()` that of a new schema."""

    def __init__(self, folder, settings):
        self.folder, self.data, self.port = folder, folder / "data", free_port()
        self.settings = {**_SET, "unix_socket_directories": str(folder), **settings}
        self.process = None
        self._schemas = count(1)

    @property
    def url(self):
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/memory"

    def address(self):
        """Return the address of a new root."""
        return f"{self.url}?schema=t{next(self._schemas)}_{os.getpid()}"

    def make(self):
        """Create the database cluster and its database."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        self._own(secret)
        words = ["--auth", "scram-sha-256", "--username", USER, "--pwfile", secret, "--no-sync", "--encoding", "UTF8"]
        self._done(BINARIES / "initdb", "--pgdata", self.data, "--locale", "C.UTF-8", *words)
        single = as_postgres(BINARIES / "postgres", "--single", "-F", "-D", self.data, "postgres")
        subprocess.run(single, input=b"CREATE DATABASE memory;\n", check=True, capture_output=True, cwd="/")

    def start(self):
        """Start it, and wait until it answers."""
        options = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        command = as_postgres(BINARIES / "postgres", "-D", self.data, "-p", self.port, *options, dies_with_us=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True)
        while not self.answers():
            assert self.process.poll() is None, (self.folder / "log").read_text()
            sleep(0.02)

    def answers(self):
        return subprocess.run([BINARIES / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0

    def stop(self, how=signal.SIGQUIT):
        """Stop it: at once unless *how* says otherwise."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
        self.process = None

    def kill(self):
        """Kill all its processes, like a power cut."""
        head = self.process.pid
        everyone = [head, *self._children()]
        for pid in everyone:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        for pid in everyone[1:]:
            _gone(pid)

    def _children(self):
        head = self.process.pid
        return [*map(int, Path(f"/proc/{head}/task/{head}/children").read_text().split())]

    def sql(self, statement, database="memory"):
        """Run *statement* as the superuser."""
        import psycopg

        with psycopg.connect(f"{self.url.rpartition('/')[0]}/{database}", autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def follower(self, folder, **settings):
        """Return a second server that replicates this one."""
        made = Server(folder, {**self.settings, "unix_socket_directories": str(folder), **settings})
        environment = {**os.environ, "PGPASSWORD": PASSWORD}
        source = ["-h", "127.0.0.1", "-p", self.port, "-U", USER]
        copy = as_postgres(
            BINARIES / "pg_basebackup", "-D", made.data, *source, "-R", "-X", "stream", "-c", "fast", "-N"
        )
        subprocess.run(copy, check=True, capture_output=True, cwd="/", env=environment)
        return made

    def cut_off(self):
        """Stop the replication until `promote`."""
        os.kill(self.process.pid, signal.SIGSTOP)  # who would begin to listen anew
        for pid in self._children():
            if b"walreceiver" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGTERM)
                _gone(pid)

    def promote(self):
        """Make this server the primary."""
        os.kill(self.process.pid, signal.SIGCONT)
        self._done(BINARIES / "pg_ctl", "promote", "-w", "-D", self.data)

    def _done(self, *command):
        done = subprocess.run(as_postgres(*command), capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr

    def _own(self, path):
        if os.geteuid() == 0:
            shutil.chown(path, "postgres", "postgres")


def _gone(pid):
    """Wait until a process has ended, which need not be a child."""
    with suppress(FileNotFoundError, ProcessLookupError):
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            sleep(0.005)


@contextmanager
def folder():
    """A folder that the user of PostgreSQL owns."""
    path = Path(tempfile.mkdtemp(prefix="jidomem-postgres-"))
    try:
        if os.geteuid() == 0:
            shutil.chown(path, "postgres", "postgres")
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def server(**settings):
    """A running server with additional *settings*; it leaves no files."""
    with folder() as place:
        made = Server(place, {**QUICK, **settings})
        made.make()
        made.start()
        try:
            yield made
        finally:
            made.stop()
