import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../place.ts";

const program = fileURLToPath(new URL("./permission-model.ts", import.meta.url));
const repository = fileURLToPath(new URL("../../../../", import.meta.url));

/** What the program says, line by line, in a process that may do only this. */
function run(store: string, ...allowed: string[]): string[] {
  const flags = ["--permission", `--allow-fs-read=${repository}`, ...allowed, "--conditions=holdfast-source"];
  return execFileSync(process.execPath, [...flags, program, store], { encoding: "utf8" })
    .trimEnd()
    .split("\n");
}

test("node --permission: reading works where it is allowed; what is forbidden is told, and how to allow it", async () => {
  using here = place();
  const path = join(here.path, "store");
  const toRead = /^STORE_FORBIDDEN .*\(--permission\) forbids it.*--allow-fs-read=<folder>/;
  const toWrite = /^STORE_FORBIDDEN .*\(--permission\) forbids it.*disables fsync.*without --permission/;
  const reads = `--allow-fs-read=${here.path}`;
  expect(run(path, reads)).toEqual([expect.stringMatching(toWrite)]);
  {
    await using store = await openStore(path);
    await using session = await store.create({ dialect: "ai-sdk" });
    await (await session.startTurn({ role: "user", content: "words" })).end();
  }
  expect(run(path)).toEqual([expect.stringMatching(toRead)]);
  for (const allowed of [[reads], [reads, `--allow-fs-write=${here.path}`]])
    expect(run(path, ...allowed)).toEqual(["[1,1,1]", expect.stringMatching(toWrite), '"closed"']);
});
