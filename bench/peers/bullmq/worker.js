// Sends webhooks with BullMQ and undici.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { Worker } from "bullmq";
import pg from "pg";
import { Pool } from "undici";
import { QUEUE, connect } from "./settings.js";

const { ADDRESSES, CA_FILE, CONCURRENCY, DATABASE_URL, SECRET } = process.env;
const INSERT = {
  name: "attempt",
  text: "INSERT INTO attempts (delivery, duration_ms, status, response) VALUES ($1, $2, $3, $4)",
};

const concurrency = Number(CONCURRENCY);
const database = new pg.Pool({ connectionString: DATABASE_URL, max: Number(process.env.DB_POOL ?? 16) });
const { origin } = new URL(JSON.parse(ADDRESSES)[0]);
const receivers = new Pool(origin, {
  connections: concurrency,
  keepAliveTimeout: 120_000,
  connect: { ca: readFileSync(CA_FILE) },
  headersTimeout: 10_000,
  bodyTimeout: 10_000,
});

function headers(delivery, body) {
  const timestamp = Math.floor(Date.now() / 1000);
  const value = createHmac("sha256", SECRET).update(`${timestamp}.`).update(body).digest("hex");
  return {
    "content-type": "application/json",
    "user-agent": "Peer/1",
    "x-service-delivery": delivery,
    "x-service-signature": `t=${timestamp},v1=${value}`,
  };
}

async function deliver({ data: { delivery, address, body } }) {
  const began = performance.now();
  const answer = await receivers.request({
    method: "POST",
    path: new URL(address).pathname,
    headers: headers(delivery, body),
    body,
  });
  const response = (await answer.body.text()).slice(0, 16384);
  const duration = Math.round(performance.now() - began);
  await database.query({ ...INSERT, values: [delivery, duration, answer.statusCode, response] });
  if (answer.statusCode >= 300) throw new Error(`The server answered ${answer.statusCode}.`);
}

const worker = new Worker(QUEUE, deliver, { connection: connect(), concurrency });
worker.on("error", (error) => console.error(error));
process.on("SIGTERM", async () => {
  await worker.close();
  process.exit(0);
});
