// Feeds the workers. Reads lines: a number enqueues that many held jobs, and `release` releases them. Prints a line
// after each order.
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { Queue } from "bullmq";
import { QUEUE, connect } from "./settings.js";

const { BODY } = process.env;
const ADDRESSES = JSON.parse(process.env.ADDRESSES);
const OPTIONS = {
  attempts: 8,
  backoff: { type: "exponential", delay: 1000 },
  removeOnComplete: true,
  removeOnFail: true,
};

const queue = new Queue(QUEUE, { connection: connect() });

async function enqueue(number) {
  await queue.pause();
  for (let first = 0; first < number; first += 500) {
    const jobs = Array.from({ length: Math.min(500, number - first) }, (_, index) => ({
      name: "deliver",
      data: {
        delivery: `dlv_${randomUUID()}`,
        address: ADDRESSES[(first + index) % ADDRESSES.length],
        body: BODY,
      },
      opts: OPTIONS,
    }));
    await queue.addBulk(jobs);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  await (line === "release" ? queue.resume() : enqueue(Number(line)));
  console.log("done");
}
process.exit(0);
