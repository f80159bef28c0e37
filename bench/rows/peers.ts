import * as fs from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { compareP50, type Side } from "../interleave.ts";
import type { Entry } from "../messages.ts";
import { p50Note } from "./append.ts";

/**
 * Other ways to store sessions, against the same reference: a row per message in SQLite, and rewriting the whole file
 * for each message.
 */
export async function peersRow(bench: Bench, results: Results): Promise<void> {
  const reference = bench.reference();
  const compare = async (what: string, side: Side, against: Side, perRound: number): Promise<number> => {
    const plan = { rounds: 5, perRound, warmUp: Math.min(300, perRound) };
    const { ratios, p50Us } = await compareP50([side, against], bench.entries, plan);
    results.peers.push({ what, unit: "×", rounds: ratios, note: p50Note(p50Us) });
    return p50Us[0].toSorted((a, b) => a - b)[2]!;
  };
  const write = { sync: reference.write };
  const writeAndSync = { awaited: reference.writeAndSync };

  for (const [mode, against, perRound] of [
    ["NORMAL", write, bench.size(2000, 600)],
    ["FULL", writeAndSync, bench.size(400, 150)],
  ] as const) {
    const database = openTable(bench.path("peer"), mode);
    const insert = database.prepare("INSERT INTO messages (session, message) VALUES (?, ?)");
    const side = { sync: (entry: Entry) => void insert.run("session", JSON.stringify(entry.message)) };
    await compare(`a row per message, SQLite WAL ${mode}`, side, against, perRound);
    database.close();
  }

  for (const age of [100, 1000]) {
    const path = bench.path("whole");
    const messages = Array.from({ length: age }, (_, i) => bench.entries[i % bench.entries.length]!.message);
    const side = {
      sync: (entry: Entry): void => {
        // In the place of the oldest, so that the session keeps its size while it is measured.
        messages.shift();
        messages.push(entry.message);
        fs.writeFileSync(`${path}.tmp`, JSON.stringify(messages, null, 2));
        fs.renameSync(`${path}.tmp`, path);
      },
    };
    const what = `the whole file anew per message, at ${age.toLocaleString("en")} messages`;
    const p50Us = await compare(what, side, write, bench.size(age === 100 ? 100 : 20, age === 100 ? 30 : 6));
    results.ages.push({ who: "whole file anew", records: age, p50Us });
  }
  reference.close();
}

/** A table with a row per message, as many would make it. */
export function openTable(path: string, mode: "NORMAL" | "FULL"): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=${mode};
    CREATE TABLE messages (id INTEGER PRIMARY KEY, session TEXT NOT NULL, message TEXT NOT NULL);
    CREATE INDEX by_session ON messages (session, id)`);
  return database;
}
