import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
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

/** One file under two names, by a mount of that file alone: what `docker run -v ./store.db:/data/store.db` makes. */
async function twoNames(machine: Machine): Promise<{ readonly file: string; readonly mounted: string }> {
  const root = await machine.tmpfs("names", mib(32));
  for (const name of ["a", "b"]) mkdirSync(join(root, name));
  const [file, mounted] = [join(root, "a", "store.db"), join(root, "b", "store.db")];
  writeFileSync(file, "");
  writeFileSync(mounted, "");
  await run("mount", "--bind", file, mounted);
  return { file, mounted };
}

/**
 * A process in a container of its own, which sees `seen` and not the folder `hidden`. Opens the store under that name,
 * appends a note to the session, or makes it, and closes the store or is killed. Says what it found, or why it was
 * refused.
 */
async function inContainer(
  seen: string,
  hidden: string,
  id: string,
  text: string,
  end: "close" | "die",
): Promise<string> {
  const program = `
    const { openSqliteStore } = await import(${JSON.stringify(new URL("../../src/internal.ts", import.meta.url).href)});
    try {
      const store = await openSqliteStore(${JSON.stringify(seen)});
      const has = await store.has("${id}");
      const { journal, records } = has ? await store.open("${id}") : { journal: await store.create("${id}", []), records: [] };
      await journal.append({ kind: "note", text: "${text}" });
      console.log(records.filter(({ kind }) => kind === "note").map(({ text }) => text).join(" "));
      if ("${end}" === "die") process.kill(process.pid, "SIGKILL");
      await store.close();
    } catch (error) {
      console.log(error.code, error.message);
    }`;
  const script = 'mount -t tmpfs tmpfs "$1"; shift; exec "$@"';
  const node = [process.execPath, "--conditions=holdfast-source", "--input-type=module", "-e", program];
  const child = spawn("unshare", ["--mount", "sh", "-c", script, "sh", hidden, ...node], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    said += chunk;
  });
  await once(child, "close");
  return said.trim();
}

function needsMounts(context: TestContext): void {
  needs(context, "a file under two names", whyNoMounts());
}

test("P1: a mount of the file alone: one program has one store under both names, and either is welcome once it is closed", async (context) => {
  needsMounts(context);
  await using machine = new Machine();
  const { file, mounted } = await twoNames(machine);
  const id = newId();
  {
    await using store = await openSqliteStore(file);
    const journal = await store.create(id, [note("a")]);
    await using same = await openSqliteStore(mounted);
    await expect(same.open(id)).rejects.toMatchObject({ code: "SESSION_BUSY" });
    await journal.append(note("b"));
  }
  {
    await using store = await openSqliteStore(mounted);
    await (await store.open(id)).journal.append(note("c"));
  }
  await using store = await openSqliteStore(file);
  expect(textsOf((await store.open(id)).records)).toEqual(["a", "b", "c"]);
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

test("P1: two containers, each of which sees only its own name of the file", async (context) => {
  needsMounts(context);
  await using machine = new Machine();
  const { file, mounted } = await twoNames(machine);
  const [a, b] = [join(file, ".."), join(mounted, "..")];
  const id = newId();
  // One after the other, each in order: both are welcome, and find what the other has written.
  expect(await inContainer(file, b, id, "1", "close")).toBe("");
  expect(await inContainer(mounted, a, id, "2", "close")).toBe("1");
  expect(await inContainer(file, b, id, "3", "close")).toBe("1 2");
  // One is killed: the newest record is in its log, which the other one cannot see.
  expect(await inContainer(file, b, id, "4", "die")).toBe("1 2 3");
  const refused = await inContainer(mounted, a, id, "5", "close");
  expect(refused).toMatch(/^PATH_UNSAFE .*is not visible from here/);
  expect(refused).toContain(`${file}-wal`);
  expect(await inContainer(file, b, id, "5", "close")).toBe("1 2 3 4");
  expect(await inContainer(mounted, a, id, "6", "close")).toBe("1 2 3 4 5");
  // One looks at it, and is at work then.
  expect(await inContainer(file, b, id, "7", "close")).toBe("1 2 3 4 5 6");
  await using store = await openSqliteStore(file);
  expect(await inContainer(mounted, a, id, "lost", "close")).toMatch(/^STORE_BUSY/);
  const { journal } = await store.open(id);
  for (const text of ["8", "9"]) {
    await journal.append(note(text));
    expect(await inContainer(mounted, a, newId(), "lost", "close")).toMatch(/^STORE_BUSY/);
  }
  expect(textsOf((await store.read(id)).records)).toEqual(["1", "2", "3", "4", "5", "6", "7", "8", "9"]);
});

test("P1: two containers that open a new file at the same time: one of them gets it", async (context) => {
  needsMounts(context);
  await using machine = new Machine();
  const { file, mounted } = await twoNames(machine);
  const [a, b] = [join(file, ".."), join(mounted, "..")];
  const id = newId();
  const said = await Promise.all([inContainer(file, b, id, "a", "close"), inContainer(mounted, a, id, "b", "close")]);
  for (const one of said) expect(one).toMatch(/^(?:PATH_UNSAFE.*|STORE_BUSY.*|a|b|)$/);
  const seen = await inContainer(file, b, id, "c", "close");
  const written = ["a", "b"].filter((_, i) => !/PATH_UNSAFE|STORE_BUSY/.test(said[i]!));
  expect(written.length).toBeGreaterThan(0);
  expect(seen.split(" ").sort()).toEqual(written);
});
