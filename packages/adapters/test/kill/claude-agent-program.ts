import { appendFileSync, writeSync } from "node:fs";
import { openFolderStore } from "holdfast/internal";
import { openJournalStore } from "holdfast/store";
import { deadlyDisk } from "../../../holdfast/test/deadly-disk.ts";
import { HoldfastSessionStore } from "../../src/claude-agent/index.ts";
import type { SessionEntry, SessionKey } from "../../src/claude-agent/surface.ts";
import { ClaudeCode, type Mirror, type ScriptedCall } from "../claude-agent/claude-code.ts";

/** A program that is killed: Claude Code's side of a session, with a sub-agent, in three turns. */

export interface Orders {
  readonly address: string;
  readonly kind: "folder" | "sqlite";
  /** What its tools do to the world: a line for each. */
  readonly effects: string;
  /** When the mirror gets the entries: at once, at the end of the turn, or never for every second batch. */
  readonly mirror: "eager" | "batched" | "dropped";
  /** SIGKILL right after the nth write to a journal; 0: it is left alone. */
  readonly killAfter: number;
}

export const KEY: SessionKey = { projectKey: "-tmp-project", sessionId: "the-session" };
export const SUB: SessionKey = { ...KEY, subpath: "subagents/agent-a1" };
export const TURNS: readonly { readonly prompt: string; readonly calls: readonly ScriptedCall[] }[] = [1, 2, 3].map(
  (turn) => ({
    prompt: `prompt ${turn}`,
    calls: [1, 2].map((n) => ({ id: `call_${turn}_${n}`, name: "act", input: { n: `${turn}.${n}` } })),
  }),
);
export const INNER: ScriptedCall = { id: "call_inner", name: "act", input: { n: "inner" } };

export type Say = (what: string, value?: unknown) => void;

/** A mirror as the SDK drives it: what is acknowledged is said. */
function mirrorOf(store: HoldfastSessionStore, how: Orders["mirror"], say: Say): Mirror & { flush(): Promise<void> } {
  let waiting: [SessionKey, SessionEntry[]][] = [];
  let batches = 0;
  const append = async (key: SessionKey, entries: SessionEntry[]): Promise<void> => {
    say("append", { key, entries });
    await store.append(key, entries);
    say("appended", { key, entries });
  };
  return {
    load: (key) => store.load(key),
    append: async (key, entries) => {
      if (how === "batched") waiting.push([key, entries]);
      else if (how === "eager" || batches++ % 2 === 0) await append(key, entries);
    },
    flush: async () => {
      for (const [key, entries] of waiting) await append(key, entries);
      waiting = [];
    },
  };
}

/** One life. `isDone` says which calls the model knows to be done, or to be in doubt. */
export async function live(
  store: HoldfastSessionStore,
  { effects, mirror: how }: Pick<Orders, "effects" | "mirror">,
  say: Say,
  isDone: (call: string, told: string) => boolean = () => false,
): Promise<string> {
  const mirror = mirrorOf(store, how, say);
  const act = ({ id }: ScriptedCall): string => {
    appendFileSync(effects, `${id}\n`);
    return `${id} is done`;
  };
  const { hooks } = store;
  const recorded = (event: keyof typeof hooks) =>
    hooks[event].map(({ hooks: all }) => ({
      hooks: all.map((hook) => async (input: Parameters<typeof hook>[0]) => {
        const output = await hook(input);
        say(event, { call: input.tool_use_id, prompt: input.prompt });
        return output;
      }),
    }));
  const heard = {
    UserPromptSubmit: recorded("UserPromptSubmit"),
    PreToolUse: recorded("PreToolUse"),
    PostToolUse: recorded("PostToolUse"),
    PostToolUseFailure: recorded("PostToolUseFailure"),
  };
  const claude = await ClaudeCode.start({ key: KEY, mirror, hooks: heard, act });
  let told = "";
  for (const [index, { prompt, calls }] of TURNS.entries()) {
    told += (await claude.prompt(prompt)) ?? "";
    for (const call of calls) if (!isDone(call.id, told)) await claude.call(call);
    if (index === 1 && !isDone(INNER.id, told)) {
      const agent = await ClaudeCode.start({ key: SUB, mirror, hooks: heard, act });
      await agent.call(INNER);
      await mirror.flush();
    }
    await claude.answer(`answer to ${prompt}`);
    await mirror.flush();
  }
  return told;
}

export function open(orders: Orders): Promise<HoldfastSessionStore> {
  const { address, kind, killAfter } = orders;
  const disk = deadlyDisk({ killAfter });
  return HoldfastSessionStore.openWith(
    (options) =>
      kind === "folder"
        ? openFolderStore(address, { ...options, disk })
        : openJournalStore(`sqlite:${address}/sessions.db`, options),
    { durability: "process" },
  );
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const store = await open(orders);
  const say: Say = (what, value = null) => writeSync(1, `${JSON.stringify([what, value])}\n`);
  say("begun");
  await live(store, orders, say);
  say("completed");
  await store.close();
}
