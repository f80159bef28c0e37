import { appendFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { KillPoint } from "@holdfast/testkit/internal/kill";
import { type AnthropicMessage, openStore, type Session, type Turn } from "holdfast";
import { nodeDisk } from "holdfast/disk";

/** An agent that does one thing, says where it stands, and waits there to be killed: `session-agent.ts <job>`. */
export interface Job {
  readonly script: keyof typeof scripts | "none";
  readonly address: string;
  /** Of an earlier process. */
  readonly session?: string;
  readonly effects: string;
  readonly point?: KillPoint;
}

export type Said =
  | { readonly e: "at"; readonly point: string }
  | { readonly e: "opened"; readonly session: string }
  /** A replacement was acknowledged. */
  | { readonly e: "replaced"; readonly generation: number };

type M = AnthropicMessage;
const DRAFT_MS = 40;
const user = (text: string): M => ({ role: "user", content: text });
const says = (text: string): M => ({ role: "assistant", content: text });
const calls = (...ids: string[]): M =>
  ({ role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "work", input: { id } })) }) as M;

const job = JSON.parse(process.argv[2]!) as Job;
const say = (said: Said): number => writeSync(3, `${JSON.stringify(said)}\n`);
/** The effect of a tool: a line in a file, durable when it returns. */
const act = (call: string): void => appendFileSync(job.effects, `${call}\n`, { flush: true });

/** Here it is killed. */
function here(): Promise<never> {
  setInterval(() => undefined, 1000);
  say({ e: "at", point: job.script });
  return new Promise(() => undefined);
}

/** Timers that were due have run, those of drafts too. */
async function shownForLong(): Promise<void> {
  await sleep(DRAFT_MS * 2);
  await new Promise(setImmediate);
}

/** Runs what the library says is to be run, and nothing else. */
async function runOpen(turn: Turn<M>, then: () => Promise<void> = async () => undefined): Promise<void> {
  for (const { id } of turn.open) {
    await turn.tool(id, async () => {
      act(id);
      await then();
      return `${id} is done`;
    });
  }
}

const scripts = {
  /** C2. */
  async streams({ session }: Stage) {
    const turn = await session.startTurn(user("tell me"));
    const { draft } = turn.request();
    draft.push({ text: "words that " });
    draft.push({ text: "were shown" });
    await shownForLong();
    draft.push({ text: " and more" });
    await here();
  },
  /** C36: the second attempt has words of its own. */
  async retries({ session }: Stage) {
    const turn = await session.startTurn(user("tell me"));
    turn.request().draft.push({ text: "wrong words" });
    await shownForLong();
    turn.request().draft.push({ text: "right words" });
    await shownForLong();
    await here();
  },
  /** C36: the second attempt has none yet. */
  async retriesInSilence({ session }: Stage) {
    const turn = await session.startTurn(user("tell me"));
    turn.request().draft.push({ text: "wrong words" });
    await shownForLong();
    turn.request();
    await here();
  },
  /** C3. */
  async runsThree({ session }: Stage) {
    const turn = await session.startTurn(user("do three things"));
    await turn.append(calls("a", "b", "c"));
    const { promise: started, resolve } = Promise.withResolvers<void>();
    const hangs = (): Promise<never> => {
      resolve();
      return new Promise(() => undefined);
    };
    void turn.tool("c", hangs);
    await Promise.all([started, ...["a", "b"].map((id) => turn.tool(id, () => `${id} is done`))]);
    await here();
  },
  /** C4. */
  async actsAndDies({ session }: Stage) {
    const turn = await session.startTurn(user("do it once"));
    await turn.append(calls("once", "later"));
    await turn.tool("once", async () => {
      act("once");
      await here();
    });
  },
  async reruns({ session }: Stage) {
    await runOpen(await session.resumeTurn({ calls: "rerun" }));
    await here();
  },
  /** C5, C10. */
  async waitsForTheModel({ session }: Stage) {
    await session.startTurn(user("a long question"));
    await here();
  },
  async isCreated(_: Stage) {
    await here();
  },
  /** C9. */
  async queues({ session }: Stage) {
    const turn = await session.startTurn(user("first"));
    const second = await session.enqueue(user("second"));
    await session.enqueue(user("third"));
    await session.enqueue(user("fourth"));
    await turn.append(second);
    await here();
  },
  async delivers({ session }: Stage) {
    await session.startTurn(session.queue[0]!);
    await here();
  },
  /** C37. */
  async asksForApproval({ session }: Stage) {
    const turn = await session.startTurn(user("delete it"));
    await turn.append(calls("free", "guarded"));
    await turn.tool("free", async () => "done");
    await turn.suspend({ reason: "approval", calls: ["guarded"] });
    await here();
  },
  async isApproved({ session }: Stage) {
    const turn = await session.resumeTurn({ calls: ({ state }) => (state === "awaiting" ? "keep" : "close") });
    await runOpen(turn, here);
  },
  async isApprovedAndEnds({ session }: Stage) {
    await runOpen(await session.resumeTurn({ calls: ({ state }) => (state === "awaiting" ? "keep" : "close") }));
    await here();
  },
  /** C38. */
  async compactsInMidTurn({ session }: Stage) {
    await session.rename("kept title");
    await session.note("plan", { step: 3 });
    const first = await session.startTurn(user("old"), { id: "old" });
    await first.append(says("old answer"), { usage: { inputTokens: 10 } });
    await first.end();
    const turn = await session.startTurn(user("now"), { id: "now" });
    await session.enqueue(user("later"), { id: "later" });
    await turn.append(calls("a", "b"), { id: "calls", usage: { inputTokens: 5 } });
    await turn.tool("a", async () => "a is done");
    await turn.toolStarted("b");
    await session.patch("now", { pinned: true });
    await session.replace([user("summary"), ...session.entries.slice(2)], { reason: "compaction" });
    await here();
  },
  /** C7: each conversation is of one generation. */
  async replaces({ session }: Stage) {
    for (let generation = 1; ; generation++) {
      const items = Array.from({ length: 6 }, (_, n) => user(`${generation} ${n} ${"x".repeat(2000)}`));
      await session.replace(items, { reason: "compaction" });
      say({ e: "replaced", generation });
    }
  },
};

interface Stage {
  readonly session: Session<M>;
}

if (job.script !== "none") {
  // A session store takes no disk: the real one is made to stand still.
  if (job.point) {
    const { pausingDisk } = await import("@holdfast/testkit/internal/kill");
    Object.assign(nodeDisk, pausingDisk({ ...nodeDisk }, job.point));
  }
  const store = await openStore(job.address, { recordsToolStarts: true });
  const options = { draftMs: DRAFT_MS };
  const session = await (job.session === undefined
    ? store.create<M>({ ...options, dialect: "anthropic" })
    : store.resume<M>(job.session, options));
  say({ e: "opened", session: session.id });
  await scripts[job.script]({ session });
}
