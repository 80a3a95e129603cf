"""What docs/http.md shows is run against a server."""

import json
import os
import re
import subprocess
from pathlib import Path

from http_world import BIN, running

PAGE = Path(__file__).parent.parent.parent / "docs" / "http.md"


def test_every_command_the_page_shows_runs_and_is_answered(tmp_path, monkeypatch):
    scripts = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    told = []
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("JIDOMEM_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("JIDOMEM_PROJECT", "my-project")
    with running(tmp_path / "root", "--project", "my-project") as process:
        for script in scripts:
            here = script.replace("http://127.0.0.1:8700", process.url)
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", here], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{script}\n{done.stderr}"
            assert done.stdout
            told.append(done.stdout)

    everything = "".join(told)
    assert json.loads(told[0])["status"] == "asserted"
    assert "Ship the importer" in everything
    assert re.findall('"code":"([^"]+)"', everything) == ["unknown_query", "unauthenticated"]
    assert everything.endswith("\n401")
    assert "internal_error" not in everything.replace('"internal_error"]', "")


def test_the_page_names_every_route():
    from jidomem.serve.routes import ROUTES

    text = PAGE.read_text("utf-8")
    for route in ROUTES:
        shown = route.path.replace("{project}", "my-project").split("{")[0].rstrip("/")
        assert shown in text or route.path in text, route.path
