"""Recall with an embedder reports nothing, though onnxruntime by default keeps a device id and queues reports."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from http_world import BIN, Client, running
from mcp.client.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters, stdio_client

import jidomem

pytest.importorskip("onnxruntime")


@pytest.fixture
def environment(tmp_path):
    """That of a user with an empty home."""
    (tmp_path / "home").mkdir()
    given = {name: text for name, text in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    return {**given, "HOME": str(tmp_path / "home"), "JIDOMEM_EMBEDDER": "local", "XDG_CACHE_HOME": ""}


@pytest.fixture
def root(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.remember("the build needs Rust 1.80")
    return tmp_path / "root"


def by_command(root, environment):
    arguments = ["recall", "build", "--root", str(root), "--project", "p", "--json"]
    return subprocess.run([f"{BIN}/jidomem", *arguments], env=environment, check=True, capture_output=True).stdout


def by_server(root, environment):
    with running(root, environment=environment) as server, Client(server.url) as client:
        status, _, body = client.ask(
            "POST", "/projects/p/recall", '{"query": "build"}', {"Content-Type": "application/json"}
        )
        assert status == 200
        return body


def by_mcp(root, environment):
    command = ["mcp", "--root", str(root), "--project", "p"]

    async def recall():
        parameters = StdioServerParameters(command=f"{BIN}/jidomem", args=command, env=environment)
        async with McpClient(stdio_client(parameters)) as client:
            return await client.call_tool("recall", {"query": "build"})

    return asyncio.run(recall()).model_dump_json().encode()


def by_folder_model(root, environment):
    program = (
        "from tiny_model import onnx_file, rows, write_folder;"
        "from jidomem.models.sentence_model import SentenceEmbedder;"
        f"from pathlib import Path; folder = write_folder(Path({str(root.parent / 'tiny')!r}), onnx_file(rows()));"
        "print('vectors', SentenceEmbedder(folder).generate(['zebra runs']))"
    )
    path = str(Path(__file__).parents[1] / "models")
    return subprocess.run(
        [sys.executable, "-c", program], env={**environment, "PYTHONPATH": path}, check=True, capture_output=True
    ).stdout


@pytest.mark.parametrize("recall", [by_command, by_server, by_mcp, by_folder_model])
def test_recall_leaves_no_report_for_the_vendor_of_onnxruntime(tmp_path, root, environment, recall):
    assert b"vectors" in recall(root, environment)

    assert [*(tmp_path / "home").rglob("*onnxruntime*")] == []


def test_onnxruntime_is_imported_in_one_place():
    modules = Path(jidomem.__file__).parent.rglob("*.py")

    assert [path.name for path in modules if "import onnxruntime" in path.read_text("utf-8")] == ["local_embedder.py"]
