"""The compose file, the unit and the proxy of the docs are such files, and start what there is."""

import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import click
import yaml

from jidomem.errors import CODES
from jidomem.serve.app import LOOPBACK
from jidomem.serve.listener import PORT, host_of
from jidomem.serve.mcp.http import PATH
from jidomem.serve.routes import ROUTES
from jidomem_cli.serve import MCP_PORT, serve

COMPOSE = Path(__file__).parent.parent / "docs" / "compose.yaml"
KEYS = {
    "build",
    "command",
    "configs",
    "depends_on",
    "environment",
    "healthcheck",
    "image",
    "ports",
    "restart",
    "stop_grace_period",
}


def test_every_server_of_the_compose_file_has_a_home_of_its_own_on_one_root():
    said = yaml.safe_load(COMPOSE.read_text("utf-8"))
    services = said["services"]
    servers = {name: of for name, of in services.items() if name.startswith("memory-")}

    assert len(servers) == 2
    assert {of["environment"]["JIDOMEM_ROOT"] for of in servers.values()} == {"postgresql://memory@db/memory"}
    homes = [of["volumes"] for of in servers.values()]
    assert homes[0] != homes[1]
    assert all(of["environment"]["JIDOMEM_HOME"] in of["volumes"][0] for of in servers.values())
    assert {volume.partition(":")[0] for of in services.values() for volume in of.get("volumes", [])} == {
        *said["volumes"]
    }
    assert {each["source"] for of in services.values() for each in of.get("configs", [])} == {*said["configs"]}
    assert {each for of in services.values() for each in of.get("depends_on", [])} <= {*services}
    assert all(of.keys() <= {*KEYS, "volumes"} and ("image" in of or "build" in of) for of in services.values())


def test_the_proxy_has_every_server_and_a_public_health_route():
    said = yaml.safe_load(COMPOSE.read_text("utf-8"))
    words = said["configs"]["caddy"]["content"].split()

    to = words[words.index("reverse_proxy") + 1 : words.index("{", words.index("reverse_proxy"))]
    assert to == [f"{name}:8700" for name in said["services"] if name.startswith("memory-")]
    path, host = (words[words.index(name) + 1] for name in ("health_uri", "Host"))
    assert path in {route.path for route in ROUTES if route.public}
    assert host in LOOPBACK


def test_the_servers_of_the_compose_file_are_started_with_options_there_are():
    for name, of in yaml.safe_load(COMPOSE.read_text("utf-8"))["services"].items():
        if name.startswith("memory-"):
            program, verb, *arguments = of["command"]
            assert (program, verb) == ("jidomem", "serve")
            parsed = serve.make_context("serve", arguments)
            assert isinstance(parsed, click.Context)
            assert (parsed.params["host"], parsed.params["port"]) == ("0.0.0.0", 8700)


def test_the_unit_and_the_proxy_of_the_docs_start_and_reach_servers_there_are(tmp_path):
    unit = ConfigParser(interpolation=None, delimiters="=", strict=False)
    unit.optionxform = str
    unit.read(COMPOSE.with_name("jidomem.service"))
    _, verb, *arguments = unit["Service"]["ExecStart"].split()
    parsed = serve.make_context(verb, arguments)
    nginx = COMPOSE.with_name("nginx.conf").read_text("utf-8")

    assert (unit["Service"]["User"], parsed.params["public_url"]) == ("jidomem", "https://memory.example.org")
    assert unit["Service"]["RestartPreventExitStatus"] == str(CODES["invalid_argument"][1])
    assert f"server_name {host_of(parsed.params['public_url'])};" in nginx
    assert re.findall(r"proxy_pass http://127\.0\.0\.1:(\d+);", nginx) == [str(PORT), str(MCP_PORT)]
    assert re.findall(r"location (\S+)", nginx) == ["/", PATH]
    if analyze := shutil.which("systemd-analyze"):
        there = tmp_path / "jidomem.service"
        program = str(Path(sys.executable).parent / "jidomem")
        text = COMPOSE.with_name("jidomem.service").read_text("utf-8")
        there.write_text(text.replace("/usr/local/bin/jidomem serve", f"{program} serve").replace("User=jidomem\n", ""))
        done = subprocess.run([analyze, "verify", str(there)], capture_output=True, text=True, check=False)
        assert str(there) not in done.stderr, done.stderr
