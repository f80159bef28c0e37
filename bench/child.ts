import * as fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { crc32 } from "node:zlib";
import { openStore } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openJournalStore } from "holdfast/store";
import { peakBytes, resetPeak } from "./kernel.ts";
import { makeEntries } from "./messages.ts";
import { streamed } from "./stream.ts";

/**
 * What must be measured in a process of its own: memory, the event loop, and the other end of a follower. Says what it
 * found as JSON on the last line of its output.
 */
const [task, root = "", id = "", count = "0"] = process.argv.slice(2);

const tasks: Record<string, () => Promise<unknown>> = {
  /** Opens a session for writing. */
  open: async () => {
    const store = await openFolderStore(root);
    return measured(async () => {
      const { records, journal } = await store.open(id);
      return { records: records.length, kept: [records, journal] };
    });
  },
  /** What anybody would write to read the same files: the text of each, its lines, JSON.parse, every object kept. */
  text: () =>
    measured(async () => {
      const kept: unknown[] = [];
      for (const name of fs.readdirSync(join(root, "sessions", id)).sort())
        for (const line of fs.readFileSync(join(root, "sessions", id, name), "utf8").split("\n"))
          if (line !== "") kept.push(JSON.parse(line));
      return { records: kept.length, kept };
    }),
  /** The same with care for time and memory: chunks of the file, and the bytes of each line as text. */
  parse: () => parseSession(() => true),
  /** The same, and the checksum of each line: what nobody can leave out who promises to find damage. */
  check: () => parseSession(hasItsChecksum),
  /** Resumes a session of messages, and looks at them as the next request would. */
  resume: async () => {
    const store = await openStore(root, { durability: "process" });
    const found = await measured(async () => {
      const session = await store.resume(id);
      const { messages } = session;
      return { records: messages.length, kept: [session, messages] };
    });
    // In a database the next one would have to make sure first that this one is dead.
    if (root.startsWith("postgres:")) await store.close();
    return found;
  },
  /** What anybody would write to read the messages out of a table in SQLite. */
  rows: async () => {
    const database = new DatabaseSync(root, { readOnly: true });
    return measured(async () => {
      const kept: unknown[] = [];
      const select = database.prepare("SELECT message FROM messages WHERE session = ? ORDER BY id");
      for (const { message } of select.iterate("session")) kept.push(JSON.parse(message as string));
      return { records: kept.length, kept };
    });
  },
  /** What anybody would write to read the same lines out of a database, who is connected already. */
  select: async () => {
    const { default: pg } = await import("pg");
    const client = new pg.Client({ connectionString: root });
    await client.connect();
    const found = await measured(async () => {
      const { rows } = await client.query("SELECT line FROM holdfast.lines WHERE place = $1 ORDER BY seq", [id]);
      const kept = rows.map(({ line }) => JSON.parse(line as string) as unknown);
      return { records: kept.length, kept };
    });
    await client.end();
    return found;
  },
  /** A stream of deltas for `count` seconds: recorded in a store, or with no root in nobody's. */
  stream: () => streamed(root, Number(count)),
  /** Appends a record now and then, with the time at which it was handed over. */
  write: async () => {
    const entries = makeEntries(300);
    const store = await openJournalStore(root, { durability: "process" });
    const journal = await store.create(id, []);
    process.stdout.write("ready\n");
    await new Promise((resolve) => process.stdin.once("data", resolve));
    for (let i = 0; i < Number(count); i++) {
      await sleep(2 + (i % 7));
      await journal.append({ ...entries[i % entries.length]!.record, sentNs: String(process.hrtime.bigint()) });
    }
    await store.close();
    process.stdin.destroy();
    return {};
  },
  /** Diagnoses a session of Claude Code. */
  diagnose: async () => {
    const { AGENTS, diagnose } = await import("@holdfast/doctor");
    resetPeak();
    const session = { agent: "claude-code", id: "bench", path: root, parts: [] };
    const { records } = await diagnose(AGENTS.find(({ name }) => name === session.agent)!, session);
    return { records: records.intact, peak: peakBytes() };
  },
  /** The server of the row `serve`, a bare one in its place, and their clients. */
  serve: async () => (await import("./followers.ts")).serveSessions(root, JSON.parse(id)),
  bare: async () => (await import("./followers.ts")).serveBare(JSON.parse(id)),
  follow: async () => (await import("./followers.ts")).followMany(JSON.parse(root), JSON.parse(id)),
  /** Loads all that the others load, so that its compiled form is in the cache. */
  nothing: async () => ({}),
};

const run = tasks[task ?? ""];
if (!run) throw new Error(`there is no task ${task}`);
process.stdout.write(`${JSON.stringify(await run())}\n`);
// What was opened only to be measured is left to the kernel: closing it is not part of the figure.
if (task === "open" || task === "resume") process.exit(0);

async function measured(work: () => Promise<{ records: number; kept: unknown }>): Promise<unknown> {
  resetPeak();
  const rssBefore = process.memoryUsage.rss();
  const start = performance.now();
  const { records, kept } = await work();
  const ms = performance.now() - start;
  const peak = peakBytes();
  return { ms, peakMB: peak / 1e6, grownMB: (peak - rssBefore) / 1e6, records, alive: kept !== undefined };
}

/** A line ends with its checksum: `,"crc":"00000000"}`. */
function hasItsChecksum(bytes: Buffer, start: number, end: number): boolean {
  return crc32(bytes.subarray(start, end - 18)) === Number.parseInt(bytes.toString("latin1", end - 10, end - 2), 16);
}

type IsWhole = (bytes: Buffer, start: number, end: number) => boolean;

function parseSession(isWhole: IsWhole): Promise<unknown> {
  return measured(async () => {
    const kept: unknown[] = [];
    for (const name of fs.readdirSync(join(root, "sessions", id)).sort())
      parseFile(join(root, "sessions", id, name), kept, isWhole);
    return { records: kept.length, kept };
  });
}

function parseFile(path: string, kept: unknown[], isWhole: IsWhole): void {
  const fd = fs.openSync(path, "r");
  const buffer = Buffer.allocUnsafe(1024 * 1024);
  let filled = 0;
  for (let read = 1; read > 0; ) {
    read = fs.readSync(fd, buffer, filled, buffer.length - filled, null);
    filled += read;
    let start = 0;
    for (let end = buffer.indexOf(0x0a); end !== -1 && end < filled; end = buffer.indexOf(0x0a, start)) {
      if (!isWhole(buffer, start, end)) throw new Error(`${path} is damaged`);
      kept.push(JSON.parse(buffer.toString("utf8", start, end)));
      start = end + 1;
    }
    buffer.copy(buffer, 0, start, filled);
    filled -= start;
  }
  fs.closeSync(fd);
}
