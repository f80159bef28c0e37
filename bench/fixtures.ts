import * as fs from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { Journal, JournalStore, NewRecord, Summariser } from "holdfast/store";
import type { Bench } from "./bench.ts";
import type { Entry } from "./messages.ts";

/** A disk that says yes to every sync: for making what is then measured with a real one. */
export const hastyDisk: Disk = {
  ...nodeDisk,
  open: (path, mode) => withoutSync(nodeDisk.open(path, mode)),
  syncFolder: () => {},
};

function withoutSync(file: DiskFile): DiskFile {
  return {
    path: file.path,
    read: (into, offset, length, position) => file.read(into, offset, length, position),
    write: (bytes) => file.write(bytes),
    writeAt: (bytes, position) => file.writeAt(bytes, position),
    stat: () => file.stat(),
    truncate: (size) => file.truncate(size),
    sync: () => Promise.resolve(),
    syncNow: () => {},
    close: () => file.close(),
  };
}

/** Appends `count` messages as fast as it goes, without timing. */
export async function fill(journal: Journal, entries: readonly Entry[], count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const appended = journal.append(entries[i % entries.length]!.record, { durability: "process" });
    // Now and then, so that promises do not pile up and background syncs get their turn.
    if (i % 512 === 511) await appended;
    if (i % 8192 === 8191) await new Promise(setImmediate);
  }
}

/** What a compaction leaves: the epoch, and the messages that go on. */
export function epochOf(entries: readonly Entry[], count: number): NewRecord[] {
  const messages = Array.from({ length: count }, (_, i) => ({ ...entries[i % entries.length]!.record, carried: true }));
  return [{ kind: "epoch", reason: "compaction", carried: count }, ...messages];
}

/** Title, folder and counts: what a list of sessions shows. */
export const summariser: Summariser = {
  add(row, record) {
    const before = (row ?? { title: "", cwd: "", messages: 0 }) as { title: string; cwd: string; messages: number };
    if (record.kind === "session") return { ...before, title: String(record["title"]), cwd: String(record["cwd"]) };
    return record.kind === "message" ? { ...before, messages: before.messages + 1 } : before;
  },
  carries: () => false,
};

/** A store of `count` closed sessions of ten messages each. Returns its folder. */
export async function makeSessions(bench: Bench, count: number): Promise<string> {
  const root = bench.path("sessions");
  await using store = await openFolderStore(root, { disk: hastyDisk, durability: "process", summariser });
  for (let i = 0; i < count; i++) {
    const session = {
      kind: "session",
      title: `Session ${i}: why does the test fail?`,
      cwd: `/home/me/project-${i % 50}`,
    };
    const journal = await store.create(newId(), [session]);
    for (let m = 0; m < 10; m++) void journal.append(bench.entries[(i * 10 + m) % bench.entries.length]!.record);
    await journal.close();
    if (i % 1000 === 999) bench.say(`made ${i + 1} sessions`);
  }
  return root;
}

/** A session that has grown old: open, in a store whose syncs are real. */
export interface LongSession {
  readonly root: string;
  readonly id: string;
  readonly store: JournalStore;
  readonly journal: Journal;
}

export function sizeOfSession(root: string, id: string): number {
  const folder = join(root, "sessions", id);
  return fs.readdirSync(folder).reduce((bytes, name) => bytes + fs.statSync(join(folder, name)).size, 0);
}
