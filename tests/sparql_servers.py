"""Private SPARQL stores, `oxigraph serve` and Virtuoso 7: on free ports; they end with their parent."""

import http.client
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from tests.ports import free_port

OXIGRAPH = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")
VIRTUOSO = shutil.which("virtuoso-t")
_VIRTUOSO = """[Database]
DatabaseFile = {folder}/v.db
ErrorLogFile = {folder}/v.log
LockFile = {folder}/v.lck
TransactionFile = {folder}/v.trx
xa_persistent_file = {folder}/v.pxa
[TempDatabase]
DatabaseFile = {folder}/vt.db
TransactionFile = {folder}/vt.trx
[Parameters]
ServerPort = 127.0.0.1:{sql}
DisableUnixSocket = 1
CheckpointInterval = 0
NumberOfBuffers = 10000
MaxDirtyBuffers = 7500
[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerRoot = {folder}
EnabledGzipContent = 0
[SPARQL]
ResultSetMaxRows = 1000000
"""


@contextmanager
def oxigraph(folder=None, port=None):
    """The address of a running `oxigraph serve`, in memory unless a folder is given."""
    port = port or free_port()
    words = [OXIGRAPH, "serve", "--bind", f"127.0.0.1:{port}", *(["--location", str(folder)] if folder else [])]
    with _running(words, port, "/query?query=ASK%7B%7D"):
        yield f"sparql+http://127.0.0.1:{port}/query"


@contextmanager
def virtuoso():
    """The address of a running Virtuoso that anyone may write to."""
    folder, sql, port = Path(tempfile.mkdtemp(prefix="virtuoso-")), free_port(), free_port()
    try:
        (folder / "v.ini").write_text(_VIRTUOSO.format(folder=folder, sql=sql, http=port), "utf-8")
        words = [VIRTUOSO, "+configfile", str(folder / "v.ini"), "+foreground"]
        with _running(words, port, "/sparql?query=ASK%7B%7D", folder):
            grant = 'exec=grant SPARQL_UPDATE to "SPARQL";'
            subprocess.run(["isql-vt", f"127.0.0.1:{sql}", "dba", "dba", grant], check=True, capture_output=True)
            yield f"sparql+http://127.0.0.1:{port}/sparql"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _running(words, port, path, folder=None):
    """A process that answers at a port, and ends with this one."""
    said = ["setpriv", "--pdeathsig", "KILL", *words]
    process = subprocess.Popen(said, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not _answers(port, path):
            assert process.poll() is None, f"{words[0]} ended with {process.returncode}"
            sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


def _answers(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers={"Accept": "application/sparql-results+json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200
    except OSError:
        return False
    finally:
        connection.close()
