"""Uses the MCP server with the reference client: lists tools, reads, writes, and receives errors.

Usage: mcp_client.py URL KEY PAGE REVISION, where REVISION is `auto` or a protocol revision with an initialize request.
Prints one JSON object: the negotiated revision, the names of the tools, and the results of the calls.
"""

import asyncio
import json
import sys

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url: str, key: str, page: str, revision: str) -> None:
    """Runs the calls and prints the results."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=revision) as client:
            tools = await client.list_tools()
            made = await client.call_tool("create_monitor", {"pageId": page, "url": "https://a.example"})
            listed = await client.call_tool("list_monitors", {"pageId": page})
            wrong = await client.call_tool("get_page", {"pageId": "pg_nothing"})
            print(
                json.dumps(
                    {
                        "revision": client.protocol_version,
                        "tools": [tool.name for tool in tools.tools],
                        "made": made.structured_content,
                        "listed": listed.structured_content,
                        "wrong": {"isError": wrong.is_error, "text": wrong.content[0].text},
                    }
                )
            )


asyncio.run(main(*sys.argv[1:]))
