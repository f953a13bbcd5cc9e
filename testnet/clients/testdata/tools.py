# Uses a node's tools by the official client of MCP, over HTTP and over stdio.
import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

url, key, company = os.environ["SELVAGE_API_URL"], os.environ["SELVAGE_API_KEY"], os.environ["PAPERCLIP_COMPANY_ID"]


async def use(client: Client, way: str) -> list[str]:
    async def call(name: str, /, **arguments: object) -> tuple[str, bool]:
        answer = await client.call_tool(name, arguments)
        return answer.content[0].text, bool(answer.is_error)

    said = [f"{len((await client.list_tools()).tools)} tools"]
    text, _ = await call("paperclipCreateIssue", companyId=company, title="Weld the arm")
    said.append(json.loads(text)["title"])
    text, _ = await call("selvageFindTools", query="add a label", limit=1)
    found = json.loads(text)["tools"][0]
    said.append(found["name"])
    text, _ = await call("selvageCallTool", name=found["name"], arguments={"companyId": company, "name": way, "color": "#ff0000"})
    said.append(json.loads(text)["color"])
    text, refused = await call("selvageCallTool", name=found["name"], arguments={"companyId": company, "name": way, "color": "red"})
    said.append(f"{json.loads(text)['status']} {'refused' if refused else 'answered'}")
    return said


async def main() -> None:
    headers = {"Authorization": "Bearer " + key}
    for pick in "", "?tools=secrets,runs", "?tools=all":
        async with create_mcp_http_client(headers=headers) as http:
            async with Client(streamable_http_client(url + "/mcp" + pick, http_client=http)) as client:
                print(*(await use(client, "http") if pick == "" else [pick, len((await client.list_tools()).tools)]))
    program = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))
    async with Client(program) as client:
        print(*await use(client, "stdio"))


asyncio.run(main())
