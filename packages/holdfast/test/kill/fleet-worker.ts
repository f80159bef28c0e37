import { appendFileSync, closeSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { validateAnthropic } from "@holdfast/testkit";
import { type AnthropicMessage, isHoldfastError, type OpenCall, openStore, type Session, type Turn } from "holdfast";

/**
 * A worker on a folder: `fleet-worker.ts <orders>`. It finishes turns with a model that streams, and asks in each step
 * for a tool that must not run twice and for one that may. SIGTERM ends it, and hands over what is under way.
 */

type M = AnthropicMessage;

export interface WorkerOrders {
  readonly folder: string;
  /** Steps of each turn. */
  readonly steps: number;
  /** The longest time of a tool, and of a pause of the model. */
  readonly slowMs: number;
  readonly life: string;
  /** It runs out of descriptors again and again. */
  readonly starves: boolean;
}

/** What it says, one JSON line each. */
export interface WorkerSaid {
  readonly session?: string;
  /** How the interruption was when it took the session, and what had been tried. */
  readonly took?: string;
  readonly resumes?: number;
  readonly tries?: number;
  /** A tool has run. */
  readonly ran?: string;
  readonly isSafe?: boolean;
  /** A request that the provider would refuse, or one that tells the model of an interruption. */
  readonly refused?: unknown;
  readonly told?: string;
  readonly outcome?: string;
  readonly error?: string;
}

/** Synchronously, so that a SIGKILL loses none of it. */
function say(what: WorkerSaid): void {
  writeSync(1, `${JSON.stringify(what)}\n`);
}

async function run({ folder, steps, slowMs, life, starves }: WorkerOrders): Promise<void> {
  const slow = (signal?: AbortSignal): Promise<void> =>
    sleep(Math.random() * slowMs, undefined, signal ? { signal } : {});

  async function tool(turn: Turn<M>, { id, name }: OpenCall): Promise<void> {
    const isSafe = name === "again";
    await turn.tool(
      id,
      async () => {
        // The effect, and who had it.
        appendFileSync(`${folder}.effects`, `${id} ${isSafe} ${life}\n`);
        say({ ran: id, isSafe });
        await slow();
        return "done";
      },
      { replay: isSafe ? "safe" : "never" },
    );
  }

  async function finish(session: Session<M>, tries: number): Promise<void> {
    const { how, resumes, answered } = session.interruption!;
    say({ session: session.id, took: how.kind, resumes, tries });
    if (answered) return session.completeTurn();
    const turn = await session.resumeTurn({ calls: "rerun" });
    for (;;) {
      await Promise.all(turn.open.map((call) => tool(turn, call)));
      const step = session.messages.filter(({ role }) => role === "assistant").length;
      const { messages, draft } = turn.request();
      const refused = validateAnthropic(messages);
      if (refused.length > 0) say({ session: session.id, refused });
      const told = /interrupted|cut off|restarted|the process/.exec(JSON.stringify(messages));
      if (told) say({ session: session.id, told: told[0] });
      for (const word of ["I ", "will ", "do ", "it."]) {
        draft.push({ text: word });
        await slow(turn.signal);
      }
      const text = { type: "text" as const, text: "I will do it." };
      if (step >= steps) {
        await draft.commit({ role: "assistant", content: [text] }, { end: true });
        return;
      }
      const calls = ["once", "again"].map((name) => {
        return { type: "tool_use" as const, id: `${session.id}/${step}/${name}`, name, input: {} };
      });
      await draft.commit({ role: "assistant", content: [text, ...calls] });
    }
  }

  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  await using store = await openStore(folder, { recordsToolStarts: true });
  if (starves) void starve(stop.signal);
  say({});
  while (!stop.signal.aborted) {
    try {
      await store.work<M>(
        {
          signal: stop.signal,
          concurrency: 2,
          pollMs: 40,
          // Kills are not the sessions' fault here.
          maxTries: 1_000_000,
          backoffMs: 10,
          backoffMaxMs: 100,
          onPassedOver: () => {},
          onError: () => {},
          onResult: ({ session, outcome, error }) =>
            say({ session, outcome, ...(error === undefined ? {} : { error: String(error).slice(0, 300) }) }),
        },
        (session, { tries }) => finish(session, tries),
      );
    } catch (error) {
      // Without descriptors, a part of the library may be missing for a moment.
      if (!starves || isHoldfastError(error, "STORE_CLOSED")) throw error;
    }
  }
}

/** Takes all descriptors for a moment, again and again. */
async function starve(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(20 + Math.random() * 60);
    const taken: number[] = [];
    try {
      for (;;) taken.push(openSync("/dev/null", "r"));
    } catch {
      await sleep(5 + Math.random() * 20);
    }
    for (const fd of taken) closeSync(fd);
  }
}

const [orders] = process.argv.slice(2);
if (process.argv[1] === import.meta.filename) await run(JSON.parse(orders!) as WorkerOrders);
