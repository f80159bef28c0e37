import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { temporaryHome } from "../command.ts";

const COPIES = 6;

/** Waits until the writer was promised so many messages. */
class Acknowledged {
  readonly ids: string[] = [];
  #rest = "";
  #wake: () => void = () => undefined;

  hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    this.ids.push(...lines);
    this.#wake();
  }

  async until(count: number): Promise<readonly string[]> {
    while (this.ids.length < count) await new Promise<void>((resolve) => (this.#wake = resolve));
    return [...this.ids];
  }
}

/** As rsync and tar copy a folder that is in use: a name that is gone when its turn comes is passed over. */
function copyLive(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyLive(source, target);
    else
      try {
        copyFileSync(source, target);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
  }
}

test("a plain copy of a live folder store is a backup: all that was acknowledged before it is in it, and it goes on", async () => {
  using home = temporaryHome();
  const created = await openStore(home.store);
  const session = await created.create({ dialect: "ai-sdk" });
  await session.close();
  await created.close();
  const program = join(import.meta.dirname, "writer.ts");
  const child = spawn(process.execPath, ["--conditions=holdfast-source", program, home.store, session.id], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const acknowledged = new Acknowledged();
  child.stdout.setEncoding("utf8").on("data", (text: string) => acknowledged.hear(text));
  try {
    for (let copy = 1; copy <= COPIES; copy++) {
      const before = await acknowledged.until(copy * 35);
      const place = join(home.path, `copy-${copy}`);
      copyLive(home.store, place);
      const after = new Set(await acknowledged.until(acknowledged.ids.length + 1));

      await using store = await openStore(place);
      const found: string[] = [];
      for await (const record of store.history(session.id))
        if (record.kind === "message" && record["carried"] !== true) found.push(record["id"] as string);
      const [, ...messages] = found;
      // acknowledged before the copy ⊆ recovered, in order, and nothing that was never attempted.
      expect(messages.slice(0, before.length)).toEqual(before);
      for (const id of messages.slice(0, -1)) expect(after.has(id)).toBe(true);
      const verified = await store.verify(session.id);
      expect(verified).toMatchObject({ damaged: [], missing: [] });

      // The copy is a session like any other: it opens, says that it was cut off, and goes on.
      const resumed = await store.resume(session.id);
      expect(resumed.interruption).toMatchObject({ how: { kind: "killed" } });
      const turn = await resumed.startTurn({ role: "user", content: "in the copy" });
      await turn.end();
      await resumed.close();
      expect(await home.run(["--store", place, "verify"])).toMatchObject({ code: 0, stdout: "1 session: 1 whole.\n" });
    }
  } finally {
    child.kill("SIGKILL");
  }
});
