"""Alpaca's own MCP server, a process of its own in front of the emulator: its tools trade and read market data there.

The server takes the data URL from the environment. Its trading URL is a table in its module (2.4.0), so that the
command of docs/how-to/paper-account.md sets that entry and then is the server, unmodified.
"""

from __future__ import annotations

import asyncio
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from oomrl.exchange.friction import Friction
from tests.integration.exchange.sockets import clients
from tests.unit.exchange.venues import QUIET, UP_FIRST, tape_of

pytest.importorskip("alpaca_mcp_server", reason="Alpaca's MCP server is not installed: nothing of it was tried")

HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "paper-account.md"


def launcher(url: str) -> str:
    """Return the program that the documentation starts the server with, for another address."""
    found = re.search(r"python -c \"(.+?)\"", HOW_TO.read_text("utf-8"), re.DOTALL)
    assert found is not None
    assert "http://127.0.0.1:8765" in found[1]
    return found[1].replace("http://127.0.0.1:8765", url)


def test_a_coding_agent_trades_by_alpaca_s_mcp_tools() -> None:
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    tape = tape_of(AA=[QUIET, UP_FIRST])
    with clients(tape, 1, cash=Decimal(100_000), friction=Friction.none()) as at:
        keys = {"ALPACA_API_KEY": "key", "ALPACA_SECRET_KEY": "secret", "DATA_API_URL": at.exchange.url}
        server = StdioServerParameters(command=sys.executable, args=["-c", launcher(at.exchange.url)], env=keys)

        async def converse() -> dict[str, str]:
            async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as agent:
                await agent.initialize()

                async def call(tool: str, **arguments: Any) -> str:
                    told = await agent.call_tool(tool, arguments)
                    assert not told.isError, told.content
                    return "".join(getattr(part, "text", "") for part in told.content).replace(" ", "")

                answers = {"order": await call("place_stock_order", symbol="AA", side="buy", qty="10")}
                answers["orders"] = await call("get_orders", status="open")
                await asyncio.to_thread(at.until, "open")
                answers["positions"] = await call("get_all_positions")
                answers["account"] = await call("get_account_info")
                answers["clock"] = await call("get_clock")
                answers["quote"] = await call("get_stock_latest_quote", symbols="AA")
                start = "2006-11-01T00:00:00Z"
                answers["bars"] = await call("get_stock_bars", symbols="AA", timeframe="1Day", start=start)
                answers["closed"] = await call("close_position", symbol_or_asset_id="AA")
                return answers

        answers = asyncio.run(converse())
        books = at.books()
    assert "accepted" in answers["order"] and "accepted" in answers["orders"]
    assert '"qty":"10"' in answers["positions"]
    assert "99000.00" in answers["account"]
    assert "2006-11-21" in answers["clock"]
    assert '"ap":100' in answers["quote"]
    assert "2006-11-20" in answers["bars"]
    assert '"side":"sell"' in answers["closed"]
    assert books["positions"] == {} and Decimal(books["cash"]) == 100_000
