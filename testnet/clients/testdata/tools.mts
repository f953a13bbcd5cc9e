// Uses a node's tools by the official client of MCP, over HTTP and over stdio.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

const { SELVAGE_API_URL: url, SELVAGE_API_KEY: key, PAPERCLIP_COMPANY_ID: company } = process.env as Record<string, string>;

async function connected(transport: Transport): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  return client;
}

async function use(client: Client, way: string): Promise<string[]> {
  async function call(name: string, args: Record<string, unknown>): Promise<[string, boolean]> {
    const answer = await client.callTool({ name, arguments: args });
    const [first] = answer.content as { text: string }[];
    return [first.text, answer.isError === true];
  }
  const said = [`${(await client.listTools()).tools.length} tools`];
  said.push(JSON.parse((await call("paperclipCreateIssue", { companyId: company, title: "Weld the arm" }))[0]).title);
  const found = JSON.parse((await call("selvageFindTools", { query: "add a label", limit: 1 }))[0]).tools[0].name;
  said.push(found);
  const label = { companyId: company, name: way, color: "#ff0000" };
  said.push(JSON.parse((await call("selvageCallTool", { name: found, arguments: label }))[0]).color);
  const [text, refused] = await call("selvageCallTool", { name: found, arguments: { ...label, color: "red" } });
  said.push(`${JSON.parse(text).status} ${refused ? "refused" : "answered"}`);
  return said;
}

const requestInit = { headers: { Authorization: `Bearer ${key}` } };
for (const pick of ["", "?tools=secrets,runs", "?tools=all"]) {
  const client = await connected(new StreamableHTTPClientTransport(new URL(url + "/mcp" + pick), { requestInit }));
  console.log(...(pick === "" ? await use(client, "http") : [pick, (await client.listTools()).tools.length]));
  await client.close();
}
const program = { command: process.argv[2], args: ["mcp"], env: process.env as Record<string, string> };
const client = await connected(new StdioClientTransport(program));
console.log(...(await use(client, "stdio")));
await client.close();
