// Runs nodes of the n8n workflows as n8n does: `n8n.mjs verify` and `n8n.mjs page`, with their input on stdin.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AsyncFunction = (async () => {}).constructor;

// n8n's task runner gives the code these names, and `this.helpers`.
async function code(source, item, body) {
  const helpers = { getBinaryDataBuffer: async (index, name) => (index === 0 && name === "data" ? body : undefined) };
  const run = new AsyncFunction("require", "$input", source);
  return run.call({ helpers }, createRequire(import.meta.url), { all: () => [{ json: item }] });
}

// An expression is `={{ … }}`, alone or with text around it.
function evaluate(template, names) {
  if (typeof template !== "string" || !template.startsWith("=")) return template;
  const value = (inner) => new Function(...Object.keys(names), `return (${inner})`)(...Object.values(names));
  const whole = template.match(/^=\{\{((?:(?!\}\}).)*)\}\}$/s);
  return whole ? value(whole[1]) : template.slice(1).replace(/\{\{(.*?)\}\}/gs, (_, inner) => value(inner));
}

async function send({ parameters }, names, token, query = {}) {
  const url = new URL(evaluate(parameters.url, names));
  for (const { name, value } of parameters.queryParameters?.parameters ?? []) query[name] ??= evaluate(value, names);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  const headers = { Authorization: `Bearer ${token}` };
  for (const { name, value } of parameters.headerParameters?.parameters ?? []) headers[name] = evaluate(value, names);
  if (parameters.sendBody) headers["Content-Type"] = "application/json";
  const body = parameters.sendBody ? evaluate(parameters.jsonBody, names) : undefined;
  const response = await fetch(url, { method: parameters.method, headers, body });
  return { statusCode: response.status, headers: Object.fromEntries(response.headers), body: await response.json() };
}

// The loop of n8n's requestWithAuthenticationPaginated: the response is empty before the first request.
async function pages(node, names, token) {
  const { pagination } = node.parameters.options.pagination;
  const found = [];
  let $response = {};
  do {
    const known = { ...names, $response };
    const query = pagination.parameters.parameters.map(({ name, value }) => [name, evaluate(value, known)]);
    $response = await send(node, known, token, Object.fromEntries(query));
    found.push($response.body);
    if (evaluate(`={{ !(${pagination.completeExpression.trim().slice(3, -2)}) }}`, { $response }) !== true) break;
    if ($response.statusCode < 200 || $response.statusCode >= 300) throw new Error(JSON.stringify($response.body));
  } while (true);
  return found;
}

async function page({ workflow, settings, token }) {
  const node = Object.fromEntries(workflow.nodes.map((each) => [each.name, each]));
  const $ = (name) => ({ first: () => ({ json: name === "Settings" ? settings : undefined }) });
  const found = await pages(node["List contacts"], { $, $json: settings }, token);
  const contacts = found.flatMap((each) => each[node["One by one"].parameters.fieldToSplitOut]);
  const upserted = [];
  for (const $json of contacts) upserted.push(await send(node.Upsert, { $, $json }, token));
  return { pages: found.length, upserted };
}

const input = JSON.parse(readFileSync(0, "utf8"));
const output =
  process.argv[2] === "verify"
    ? await code(input.code, { headers: input.headers }, Buffer.from(input.body, "base64"))
    : await page(input);
console.log(JSON.stringify(output));
