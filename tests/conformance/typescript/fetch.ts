// A client by openapi-typescript and openapi-fetch, which also runs against the service.
import createClient from "openapi-fetch";
import type { components, paths, webhooks } from "./schema.ts";

type Contact = components["schemas"]["Contact"];
type Job = components["schemas"]["Job"];
type Created = webhooks["contact.created"]["post"]["requestBody"]["content"]["application/json"];

declare const process: { env: Record<string, string> };
const headers = { Authorization: `Bearer ${process.env["TOKEN"]}` };
const client = createClient<paths>({ baseUrl: process.env["BELLHOP"] ?? "", headers });

function describe(contact: Contact): string {
  const fields = Object.entries(contact.custom_fields).map(([name, value]) => `${name}=${value}`);
  return [contact.email?.toLowerCase() ?? contact.id, ...contact.tags, ...fields].join(" ");
}

function outcome(job: Job): string {
  const resource = job.resource ? `${job.resource.type} ${job.resource.id}` : "nothing yet";
  return job.problem ? job.problem.detail : `${job.kind} ${job.status}: ${resource}`;
}

// What a receiver does with a body that it has verified.
function react(body: components["schemas"]["WebhookBody"]): string {
  switch (body.kind) {
    case "contact.created":
      return greet(body);
    case "tag.added":
      return `${body.data.contact.id} is ${body.data.tag}`;
    case "sale.recorded":
      return `${body.data.sale.amount} ${body.data.sale.currency}`;
    default:
      return `nothing to do for ${body.id}`;
  }
}

function greet({ data, created_at }: Created): string {
  return `Welcome, ${data.contact.first_name ?? "stranger"}, since ${created_at.slice(0, 4)}`;
}

const me = await client.GET("/api/v1/auth/me");
if (!me.data) throw new Error(me.error.detail);
const workspace = me.data.data.workspace.id;
const path = { workspace };

async function upsert(email: string, prefer?: string): Promise<string> {
  const { data, error } = await client.POST("/api/v1/workspaces/{workspace}/contacts", {
    params: { path, header: prefer ? { Prefer: prefer } : {} },
    body: { email, tags: ["vip"], custom_fields: { plan: "gold", orders: 3, beta: true } },
  });
  if (error) {
    const errors = "errors" in error && error.errors ? error.errors : [];
    return [error.title, ...errors.map(({ pointer, detail }) => `${pointer}: ${detail}`)].join(" ");
  }
  return "object" in data.data ? outcome(data.data) : describe(data.data);
}

// Writes take effect in order, so both contacts exist once the second is there.
console.log(await upsert("eve@example.com"));
console.log(await upsert("Ada@example.com", "wait=20"));
console.log(await upsert("no address"));

const page = await client.GET("/api/v1/workspaces/{workspace}/contacts", { params: { path, query: { limit: 1 } } });
const [first] = page.data?.data ?? [];
if (first) console.log(describe(first), page.data?.meta.hasMore);

const catalogue = await client.GET("/api/v1/workspaces/{workspace}/webhooks/events", { params: { path } });
for (const { kind, sample } of catalogue.data?.data ?? []) console.log(kind, react(sample));
