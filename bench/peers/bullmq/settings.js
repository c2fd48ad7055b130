// The name of the queue, and the connection to Redis, for both programs.
import { Redis } from "ioredis";

export const QUEUE = "deliveries";

export const connect = () => new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
