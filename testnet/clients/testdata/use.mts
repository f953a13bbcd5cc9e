// Creates an issue with types that were generated from the description of the API.
import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { env: Record<string, string | undefined> };

const client = createClient<paths>({
  baseUrl: process.env.SELVAGE_API_URL ?? "",
  headers: { Authorization: `Bearer ${process.env.SELVAGE_API_KEY}` },
});

const company = await client.POST("/api/companies", { body: { name: "Typed Robotics" } });
if (!company.data) throw new Error(JSON.stringify(company.error));
const made = await client.POST("/api/companies/{companyId}/issues", {
  params: { path: { companyId: company.data.id } },
  body: { title: "Weld the arm", priority: "high" },
});
if (!made.data) throw new Error(JSON.stringify(made.error));
const agent: string | null = made.data.assigneeAgentId;
const shown = await client.GET("/api/issues/{id}", { params: { path: { id: made.data.identifier } } });
const missing = await client.GET("/api/issues/{id}", { params: { path: { id: "NO-1" } } });
console.log(shown.data?.identifier, shown.data?.status, agent, missing.error?.error);
