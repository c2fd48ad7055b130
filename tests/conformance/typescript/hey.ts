// A client by @hey-api/openapi-ts.
import { client } from "./hey/client.gen.ts";
import { listEvents, showJob, upsertContact } from "./hey/sdk.gen.ts";
import type { Contact, ContactCreatedBody, Job, Problem, UpsertContactError, WebhookBody } from "./hey/types.gen.ts";

export function connect(baseUrl: string, token: string): void {
  client.setConfig({ baseUrl, auth: () => token });
}

function describe(contact: Contact): string {
  return [contact.email?.toLowerCase() ?? contact.id, contact.created_at, ...contact.tags].join(" ");
}

function reasons(problem: UpsertContactError | Problem): string[] {
  const errors = "errors" in problem && problem.errors ? problem.errors : [];
  return [problem.detail, ...errors.map(({ pointer, detail }) => `${pointer}: ${detail}`)];
}

async function outcome(workspace: string, job: Job): Promise<string[]> {
  if (job.problem) return reasons(job.problem);
  if (job.finished_at === null) {
    const { data } = await showJob({ path: { workspace, job_id: job.id } });
    return data ? outcome(workspace, data.data) : [];
  }
  return [job.kind, job.status, job.resource?.id ?? "nothing"];
}

export async function upsert(workspace: string, email: string): Promise<string[]> {
  const { data, error } = await upsertContact({
    path: { workspace },
    headers: { Prefer: "wait=20" },
    body: { email, tags: ["vip"], custom_fields: { plan: "gold", orders: 3, beta: true } },
  });
  if (!data) return reasons(error);
  return "object" in data.data ? outcome(workspace, data.data) : [describe(data.data)];
}

export async function latest(workspace: string): Promise<string[]> {
  const { data } = await listEvents({ path: { workspace }, query: { limit: 10 } });
  return (data?.data ?? []).map((event) => `${event.kind} ${event.created_at}`);
}

// What a receiver does with a body that it has verified.
export function react(body: WebhookBody): string {
  switch (body.kind) {
    case "contact.created":
      return greet(body);
    case "booking.cancelled":
      return body.data.booking.title;
    default:
      return body.id;
  }
}

function greet({ data }: ContactCreatedBody): string {
  return `Welcome, ${data.contact.first_name ?? "stranger"}`;
}
