"""The code of what MCP refused: ours, else one for what the protocol says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import ValidationError

_INVALID = "invalid_params"
_CODES = {METHOD_NOT_FOUND: "method_not_found", INVALID_PARAMS: _INVALID}


async def noted(
    ctx: ServerRequestContext[Any, Any], call_next: CallNext, note: Callable[[str | None], object]
) -> HandlerResult:
    """Return what a message is answered; *note* is told the code of its refusal, None for none, however it ends."""
    refusal: str | None = "internal_error"
    try:
        result = await call_next(ctx)
        refusal = _of_result(result)
    except MCPError as error:
        refusal = _of_error(error)
        raise
    except ValidationError:
        refusal = _INVALID
        raise
    finally:
        note(refusal)
    return result


def _of_result(result: Any) -> str | None:
    """Return the code in the result of a tool that refused."""
    if not isinstance(result, dict) or not result.get("isError"):
        return None
    return str((result.get("structuredContent") or {}).get("code", _INVALID))


def _of_error(error: MCPError) -> str:
    """Return the code an error of the protocol carries: ours, else one for its number."""
    if isinstance(error.error.data, Mapping) and "code" in error.error.data:
        return str(error.error.data["code"])
    return _CODES.get(error.error.code, "internal_error")
