"""The text that an agent reads over MCP, and a user in a shell, of the memory `p`."""

from click.testing import CliRunner

from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

TOOL = {tool.name: tool for tool in TOOLS}


def over_mcp(memory, tool, /, **given):
    """Return the result of a *tool* for an agent that has been briefed."""
    session = ClientSession(memory, "eve")
    session.is_briefed = True
    return call(TOOL[tool], session, given)


def in_shell(memory, *words):
    """Return the output of a command that succeeds."""
    result = CliRunner().invoke(cli, ["--root", memory.settings.place, "--project", "p", *words])
    assert result.exit_code == 0, result.output
    return result.stdout
