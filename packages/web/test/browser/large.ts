import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { openStore, type Store } from "holdfast";
import type { Page } from "playwright-core";

/** What the tests and the benchmark of large sessions share. */

const TOGETHER = 250;

export function elementsIn(page: Page): Promise<number> {
  return page.evaluate(() => document.querySelectorAll("*").length);
}

/** All files of the built page, each compressed. */
export function compressedBytes(): number {
  const folder = join(import.meta.dirname, "../../dist");
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + gzipSync(readFileSync(join(parentPath, name))).length, 0);
}

/** Many short sessions and a long one, which is returned. */
export async function recordMany(
  address: string,
  { sessions, messages }: { readonly sessions: number; readonly messages: number },
): Promise<string> {
  await using store = await openStore(address, { app: "holdfast", durability: "process", recordsToolStarts: true });
  for (let from = 0; from < sessions; from += TOGETHER)
    await Promise.all(Array.from({ length: TOGETHER }, (_, at) => recordShort(store, from + at)));
  await using session = await store.create({ dialect: "ai-sdk", title: "The long one", cwd: "/work/long" });
  for (let message = 0; message < messages; message += 100) {
    const turn = await session.startTurn({ role: "user", content: `prompt at ${message}` });
    const answers = Array.from({ length: 99 }, (_, at) =>
      turn.append({ role: "assistant", content: `answer number ${message + at + 1}, with **some** words` }),
    );
    await Promise.all(answers);
    await turn.end();
  }
  return session.id;
}

async function recordShort(store: Store, index: number): Promise<void> {
  const session = await store.create({ dialect: "ai-sdk", title: `Session ${index}`, cwd: `/work/${index % 20}` });
  await (await session.startTurn({ role: "user", content: `prompt ${index}` })).end();
  await session.close();
}
