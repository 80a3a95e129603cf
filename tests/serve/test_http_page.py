"""The commands in docs/http.md run against a server."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from http_world import serving

PAGE = Path(__file__).parent.parent.parent / "docs" / "http.md"


@pytest.mark.usefixtures("loaded_program")
def test_every_command_of_the_page_succeeds(tmp_path, monkeypatch):
    scripts = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    outputs = []
    monkeypatch.setenv("JIDOMEM_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("JIDOMEM_PROJECT", "my-project")
    with serving(tmp_path / "root", "--project", "my-project") as process:
        for script in scripts:
            command = script.replace("http://127.0.0.1:8700", process.url)
            result = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True, check=False
            )
            assert result.returncode == 0, f"{script}\n{result.stderr}"
            assert result.stdout
            outputs.append(result.stdout)

    output = "".join(outputs)
    assert json.loads(outputs[0])["status"] == "asserted"
    assert "Ship the importer" in output
    assert re.findall('"code":"([^"]+)"', output) == ["unknown_query", "unauthenticated"]
    assert output.endswith("\n401")
    assert "internal_error" not in output.replace('"internal_error"]', "")


def test_the_page_names_every_route():
    from jidomem.serve.routes import ROUTES

    text = PAGE.read_text("utf-8")
    for route in ROUTES:
        shown = route.path.replace("{project}", "my-project").split("{")[0].rstrip("/")
        assert shown in text or route.path in text, route.path
