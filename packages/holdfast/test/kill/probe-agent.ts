import { appendFileSync, existsSync, readFileSync, writeSync } from "node:fs";
import { type AnthropicMessage, openStore, type Probe, type Store } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { deadlyDisk } from "../deadly-disk.ts";

/** An agent whose three tools take effect in a file, where its probes look for what happened. */

type M = AnthropicMessage;

export interface Orders {
  readonly address: string;
  /** A line for each effect: the key and the id of its call. */
  readonly effects: string;
  /** SIGKILL at the nth write to the journal, and how much of it is written; 0: never. */
  readonly killAt?: number;
  readonly written?: "all" | "half";
  /** SIGKILL in the nth question, before or after it has looked. */
  readonly inProbe?: { readonly nth: number; readonly when: "before" | "after" };
  /** SIGKILL in the tool of this call, once it has taken effect. */
  readonly inTool?: string;
  /** Settles all calls before it resumes the turn; otherwise each when it runs it. */
  readonly settles: boolean;
}

export const ANSWER = "All three are done.";
const IDS = ["a", "b", "c"];
const user: M = { role: "user", content: "Do all three." };
const calls: M = {
  role: "assistant",
  content: IDS.map((id) => ({ type: "tool_use", id, name: "act", input: {} })) as never,
};

export const effectsIn = (path: string): string[] =>
  existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];

function open({ address, killAt = 0, written = "all" }: Orders): Promise<Store> {
  const options = { recordsToolStarts: true };
  if (killAt === 0) return openStore(address, options);
  const disk = deadlyDisk({ killAfter: killAt, written });
  return openStoreWith((given) => openFolderStore(address, { ...given, disk }), options);
}

/** One life, from whatever the last one left to the end of the turn. */
export async function live(orders: Orders): Promise<void> {
  const { effects, inProbe, inTool, settles } = orders;
  let asked = 0;
  const dieIf = (when: "before" | "after"): void => {
    if (inProbe?.nth === asked && inProbe.when === when) process.kill(process.pid, "SIGKILL");
  };
  const probe: Probe<string> = async ({ key }) => {
    asked += 1;
    dieIf("before");
    const found = effectsIn(effects).find((line) => line.startsWith(`${key} `));
    dieIf("after");
    return found ? { value: found } : "did-not-happen";
  };
  await using store = await open(orders);
  const session = (await store.resumeLatest<M>()) ?? (await store.create<M>({ dialect: "anthropic" }));
  if (settles && session.interruption) await session.settleCalls({ act: probe });
  const found = session.interruption;
  if (found?.answered || (!found && session.entries.length > 0)) return;
  const turn = found ? await session.resumeTurn({ calls: "rerun" }) : await session.startTurn(user);
  if (session.entries.length === 1) await turn.append(calls);
  const act = (id: string) =>
    turn.tool(
      id,
      (_signal, { key }) => {
        appendFileSync(effects, `${key} ${id}\n`);
        if (inTool === id) process.kill(process.pid, "SIGKILL");
        return `${key} ${id}`;
      },
      { probe },
    );
  await Promise.all(turn.open.map(({ id }) => act(id)));
  await turn.append({ role: "assistant", content: ANSWER }, { end: true });
}

if (import.meta.main) {
  await live(JSON.parse(process.argv[2]!) as Orders);
  writeSync(1, "done\n");
}
