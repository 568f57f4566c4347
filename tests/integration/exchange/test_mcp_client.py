"""Alpaca's own MCP server, in front of the emulator: its tools trade and read market data there.

The server takes the data URL from the environment; its trading URL is a table in the module (2.4), which the test
points at the emulator.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from alpaca_mcp_server import server
from fastmcp import Client

from oomrl.exchange.friction import Friction
from tests.integration.exchange.sockets import clients
from tests.unit.exchange.venues import QUIET, UP_FIRST, tape_of


def test_a_coding_agent_trades_by_alpaca_s_mcp_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = tape_of(AA=[QUIET, UP_FIRST])
    with clients(tape, 1, cash=Decimal(100_000), friction=Friction.none()) as at:
        monkeypatch.setitem(server.TRADING_API_BASE_URLS, "paper", at.exchange.url)
        for name, value in {"DATA_API_URL": at.exchange.url, "ALPACA_API_KEY": "key", "ALPACA_SECRET_KEY": "s"}.items():
            monkeypatch.setenv(name, value)

        async def converse() -> dict[str, Any]:
            async with Client(server.build_server()) as agent:

                async def call(tool: str, **arguments: Any) -> str:
                    return str((await agent.call_tool(tool, arguments)).content)

                answers = {"order": await call("place_stock_order", symbol="AA", side="buy", qty="10")}
                await asyncio.to_thread(at.until, "open")
                answers["positions"] = await call("get_all_positions")
                answers["account"] = await call("get_account_info")
                answers["clock"] = await call("get_clock")
                answers["quote"] = await call("get_stock_latest_quote", symbols="AA")
                answers["bars"] = await call(
                    "get_stock_bars", symbols="AA", timeframe="1Day", start="2006-11-01T00:00:00Z"
                )
                return answers

        answers = asyncio.run(converse())
    assert "accepted" in answers["order"]
    assert '"qty":"10"' in answers["positions"].replace(" ", "")
    assert "99000.00" in answers["account"]
    assert "2006-11-21" in answers["clock"]
    assert '"ap":100' in answers["quote"].replace(" ", "")
    assert "2006-11-20" in answers["bars"]
