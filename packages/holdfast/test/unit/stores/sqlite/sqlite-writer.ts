import { writeSync } from "node:fs";
import { openSqliteStore } from "holdfast/internal";
import { HandledDisk } from "./handled-disk.ts";

/**
 * Another process that has to do with an SQLite store, told by its parent:
 * - `append-for-ever <file> <id> <durability>`: the same without end; writes the number of each note to descriptor 3,
 *   before the append and after its acknowledgement. A write, not a message: Node queues messages, and SIGKILL loses
 *   those that are not sent yet;
 * - `hold <file> <app>`: opens the store by this name, says so, and has it until it is told to end, or killed;
 * - `append-and-die <file> <id>`: appends a note, and is killed with it in the log;
 * - `exit <file> <id>`: appends a note without waiting, exits without closing anything, and reports how often the log
 *   was synced.
 */
const [task, file, id, argument] = process.argv.slice(2);
const say = (message: unknown): void => {
  process.send!(message);
};

if (task === "hold") {
  const store = await openSqliteStore(file!, { app: id! });
  say("open");
  await new Promise((resolve) => process.once("message", resolve));
  await store.close();
  process.disconnect();
} else if (task === "append-for-ever") {
  const store = await openSqliteStore(file!, { durability: argument === "power" ? "power" : "process" });
  const { journal, records } = await store.open(id!);
  let i = Number(records.findLast((record) => record.kind === "note")?.["i"] ?? 0);
  for (;;) {
    i++;
    writeSync(3, `tried ${i}\n`);
    // Some are units, and some are large: they take several pages, and so several writes.
    const unit = Array.from({ length: (i % 3) + 1 }, (_, part) => ({
      kind: "note",
      i,
      part,
      fill: "x".repeat((i % 7) * 3000),
    }));
    await journal.append(unit);
    writeSync(3, `acknowledged ${i}\n`);
  }
} else if (task === "append-and-die") {
  const store = await openSqliteStore(file!);
  await (await store.open(id!)).journal.append({ kind: "note", text: "in the log" });
  process.kill(process.pid, "SIGKILL");
} else if (task === "exit") {
  const handled = new HandledDisk();
  const store = await openSqliteStore(file!, { durability: "process", disk: handled.disk });
  const { journal } = await store.open(id!);
  await journal.append({ kind: "note" });
  const before = handled.syncs;
  process.on("exit", () => writeSync(1, `${handled.syncs - before} sync at the end`));
  process.exit(0);
}
