import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  openSpec,
  programBeside,
  type Refusal,
  type SpawnOptions,
  type StoreSpec,
  temporaryPlace,
  Victim,
  type WorkerJob,
} from "@holdfast/testkit/internal/kill";
import { Machine, mib, whyNoMounts } from "@holdfast/testkit/internal/machine";
import { newId } from "holdfast";
import { describe, expect, test } from "vitest";
import { run } from "../../../testkit/src/machine/probe.ts";
import { needs } from "./allowed.ts";

const program = programBeside(import.meta.resolve("../../../testkit/src/kill/index.ts"), "worker");
const NOBODY = 65_534;
/** Root may do everything, so what is forbidden is tried by somebody else. */
const nobody: SpawnOptions = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
const noUsers = process.platform === "win32" ? "needs POSIX permissions" : null;

async function ask(job: WorkerJob, command: unknown, options: SpawnOptions): Promise<unknown> {
  await using child = new Victim(program, job, options);
  const first = await child.until("answer");
  if (first.value !== "open") return first.value;
  const from = child.events.length;
  child.say(command);
  return (await child.until("answer", () => true, from)).value;
}

describe.each(["folder", "sqlite"])("C19: where nobody may write (%s)", (module) => {
  const specIn = (place: string): StoreSpec => ({ module, place, durability: "power" });

  test("a folder without permission: STORE_FORBIDDEN, and nothing is made", async (context) => {
    needs(context, "no permission", noUsers);
    using place = temporaryPlace();
    chmodSync(place.path, 0o555);
    const told = (await ask({ store: specIn(place.path), session: newId() }, null, nobody)) as Refusal;
    expect(told).toMatchObject({ code: "STORE_FORBIDDEN" });
    expect(readdirSync(place.path)).toEqual([]);
  });

  test("a store of somebody else's: STORE_FORBIDDEN, and nothing is touched", async (context) => {
    needs(context, "no permission", nobody.uid === undefined ? "needs root" : noUsers);
    using place = temporaryPlace();
    chmodSync(place.path, 0o755);
    const session = newId();
    const store = await openSpec(specIn(place.path));
    const journal = await store.create(session, [{ kind: "lab.made" }]);
    await journal.close();
    await store.close();
    const told = (await ask({ store: specIn(place.path), session }, { do: "open" }, nobody)) as Refusal;
    expect(told).toMatchObject({ code: "STORE_FORBIDDEN" });
    expect(told.message).toContain(place.path);
  });

  test("a read-only file system: STORE_FORBIDDEN; and writable again, the session goes on", async (context) => {
    needs(context, "read-only file system", whyNoMounts());
    await using machine = new Machine();
    const place = await machine.tmpfs("readonly", mib(8));
    const session = newId();
    const store = await openSpec(specIn(place));
    const journal = await store.create(session, [{ kind: "lab.made" }]);
    await journal.append({ kind: "lab.before" });
    await journal.close();
    await store.close();
    await run("mount", "-o", "remount,ro", place);
    expect(await ask({ store: specIn(place), session }, { do: "open" }, {})).toMatchObject({ code: "STORE_FORBIDDEN" });
    await run("mount", "-o", "remount,rw", place);
    await using again = await openSpec(specIn(place));
    const { journal: last, records } = await again.open(session);
    expect(records.map(({ kind }) => kind)).toContain("lab.before");
    await last.append({ kind: "lab.after" });
    await last.close();
  });

  test("a folder that goes away under the writer: a typed error, and nothing is acknowledged", async () => {
    using place = temporaryPlace();
    const inner = join(place.path, "gone");
    mkdirSync(inner);
    const store = await openSpec(specIn(inner));
    const journal = await store.create(newId(), [{ kind: "lab.made" }]);
    await journal.append({ kind: "lab.before" });
    rmSync(inner, { recursive: true });
    await expect(journal.append({ kind: "lab.lost" })).rejects.toMatchObject({ code: "FILE_REPLACED" });
    await expect(journal.append({ kind: "lab.lost" })).rejects.toMatchObject({ code: "FILE_REPLACED" });
    await journal.close().catch((error: unknown) => expect(error).toMatchObject({ code: "FILE_REPLACED" }));
    await store.close();
  });

  test("C24: under umask 000 folders are 0700 and files 0600", async (context) => {
    needs(context, "file modes", noUsers);
    using place = temporaryPlace();
    if (nobody.uid !== undefined) chownSync(place.path, NOBODY, NOBODY);
    const session = newId();
    const job: WorkerJob = {
      store: specIn(place.path),
      session,
      workload: { seed: 24, life: 1, profile: "epochs", nextId: 1, retry: [] },
      steps: 30,
    };
    await using writer = new Victim(program, job, { ...nobody, shell: "umask 000" });
    await writer.until("done");
    await writer.died;
    const modes = readdirSync(place.path, { recursive: true, encoding: "utf8" }).map((name) => {
      const stat = lstatSync(join(place.path, name));
      return { name, mode: (stat.mode & 0o777).toString(8), wanted: stat.isDirectory() ? "700" : "600" };
    });
    expect(modes.length).toBeGreaterThan(1);
    expect(modes.filter(({ mode, wanted }) => mode !== wanted)).toEqual([]);
  });
});
