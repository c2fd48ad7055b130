// What both programs need to reach Redis.
import { Redis } from "ioredis";

export const QUEUE = "deliveries";

export const connect = () => new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });
