"""The code of what MCP refused: ours, else one for what the protocol says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND

INVALID = "invalid_params"
_CODES = {METHOD_NOT_FOUND: "method_not_found", INVALID_PARAMS: INVALID}


def of_result(result: Any) -> str | None:
    """Return the code in the result of a tool that refused."""
    if not isinstance(result, dict) or not result.get("isError"):
        return None
    return str((result.get("structuredContent") or {}).get("code", INVALID))


def of_error(error: MCPError) -> str:
    """Return the code an error of the protocol carries: ours, else one for its number."""
    if isinstance(error.error.data, Mapping) and "code" in error.error.data:
        return str(error.error.data["code"])
    return _CODES.get(error.error.code, "internal_error")
