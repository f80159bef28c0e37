import { writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { guard, isHoldfastError, openStore } from "holdfast";

/**
 * An agent in the middle of a turn, as a user writes it: `agent.ts <store> <host>`. It says on stdout what was
 * acknowledged, and that it is ready.
 */
const [address, host] = process.argv.slice(2) as [string, keyof typeof hosts];
const store = await openStore(address);
const session = await store.create({ dialect: "openai-chat" });
const turn = await session.startTurn({ role: "user", content: "work" });

function say(text: string): void {
  writeSync(1, `${text}\n`);
}

async function work(): Promise<never> {
  for (let n = 1; ; n++) {
    await turn.append({ role: "user", content: String(n) });
    say(`ack ${n}`);
    if (n === 3) say(`ready ${session.id}`);
    await sleep(1);
  }
}

function whenTold(then: () => void): void {
  // In a task of its own: what is thrown while Deno reads its input is an unhandled rejection there.
  createInterface({ input: process.stdin }).once("line", () => setTimeout(then, 1));
}

const hosts = {
  async plain() {
    guard(session, { signals: ["SIGTERM", "SIGHUP", "SIGINT"] });
    await work();
  },
  /** Decides for itself, and drains. */
  async drains() {
    guard(session);
    process.on("SIGTERM", async () => {
      say("draining");
      await turn.append({ role: "user", content: "drained" });
      await turn.end();
      await session.close();
      process.exit(3);
    });
    await work().catch((error: unknown) => {
      if (!isHoldfastError(error)) throw error;
    });
  },
  async throws() {
    guard(session);
    whenTold(() => {
      throw new TypeError("nobody caught this");
    });
    await work();
  },
  async rejects() {
    guard(session);
    whenTold(() => void Promise.reject(new RangeError("nobody awaited this")));
    await work();
  },
  /** Handles its rejections: the guard leaves that to it. */
  async handles() {
    guard(session);
    process.on("unhandledRejection", () => say("handled"));
    whenTold(() => void Promise.reject(new RangeError("somebody handles this")));
    await work();
  },
  /** Has nothing more to do. Everything is still open: the session, its lease, the guard, a follower left unread. */
  async idle() {
    guard(session);
    await turn.append({ role: "user", content: "1" });
    const followed = session.follow()[Symbol.asyncIterator]();
    await followed.next();
    // A change that the follower's watch sees, and the hard lock, which is taken after 100 ms.
    await turn.append({ role: "user", content: "2" });
    await sleep(300);
    say(`ready ${session.id}`);
  },
};

// Not awaited: Bun prints an uncaught error, and goes on, while the program waits at its top level.
void hosts[host]();
