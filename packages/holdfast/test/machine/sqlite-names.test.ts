import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Machine, mib, whyNoMounts } from "@holdfast/testkit/internal/machine";
import { type JournalRecord, newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { expect, type TestContext, test } from "vitest";
import { run } from "../../../testkit/src/machine/probe.ts";
import { needs } from "./allowed.ts";

const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

function needsMounts(context: TestContext): void {
  needs(context, "a file that alone is mounted", whyNoMounts());
}

test("P1: a file that alone is mounted, as a container may have it, is refused under that name: its log would be elsewhere", async (context) => {
  needsMounts(context);
  await using machine = new Machine();
  const root = await machine.tmpfs("a name with spaces", mib(32));
  for (const name of ["a", "b"]) mkdirSync(join(root, name));
  const [file, mounted] = [join(root, "a", "store.db"), join(root, "b", "store.db")];
  const id = newId();
  {
    await using store = await openSqliteStore(file);
    await store.create(id, [note("a")]);
    writeFileSync(mounted, "");
    await run("mount", "--bind", file, mounted);
    const link = join(root, "link");
    symlinkSync(join(root, "b"), link);
    for (const path of [mounted, join(link, "store.db")])
      await expect(openSqliteStore(path)).rejects.toMatchObject({ code: "PATH_UNSAFE", facts: { path } });
    expect(readdirSync(join(root, "b"))).toEqual(["store.db"]);
  }
  await using store = await openSqliteStore(file);
  expect(textsOf((await store.open(id)).records)).toEqual(["a"]);
});

test("P1: a folder that is mounted twice is one folder", async (context) => {
  needsMounts(context);
  await using machine = new Machine();
  const root = await machine.tmpfs("folders", mib(32));
  for (const name of ["a", "b"]) mkdirSync(join(root, name));
  await run("mount", "--bind", join(root, "a"), join(root, "b"));
  await using store = await openSqliteStore(join(root, "a", "store.db"));
  await using same = await openSqliteStore(join(root, "b", "store.db"));
  const journal = await store.create(newId(), [note("a")]);
  await journal.append(note("b"));
  expect(textsOf((await same.read(journal.id)).records)).toEqual(["a", "b"]);
  await expect(same.open(journal.id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
});
