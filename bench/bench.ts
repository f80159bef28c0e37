import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "holdfast";
import { type FolderStoreOptions, openFolderStore } from "holdfast/internal";
import type { Durability, JournalStore } from "holdfast/store";
import type { AgePoint } from "./figure.ts";
import { fill, type LongSession } from "./fixtures.ts";
import { type Entry, makeEntries } from "./messages.ts";
import { ReferenceFile } from "./reference.ts";
import { growSession } from "./rows/age.ts";

/** What every row works with: the messages, a folder that is removed afterwards, and how much is to be done. */
export class Bench {
  readonly quick: boolean;
  readonly folder: string;
  readonly entries: readonly Entry[];
  readonly #say: (line: string) => void;
  #names = 0;
  #long: LongSession | null = null;

  constructor(options: {
    readonly quick: boolean;
    readonly parent?: string | undefined;
    readonly say: (line: string) => void;
  }) {
    this.quick = options.quick;
    this.folder = fs.mkdtempSync(join(options.parent ?? tmpdir(), "holdfast-bench-"));
    this.entries = makeEntries(3000);
    this.#say = options.say;
  }

  /** `full`, or `quick` with `--quick`. */
  size(full: number, quick: number): number {
    return this.quick ? quick : full;
  }

  id(): string {
    return newId();
  }

  /** A path of its own, which does not exist. */
  path(name: string): string {
    return join(this.folder, `${name}-${++this.#names}`);
  }

  folderStore(
    durability: Durability,
    options: FolderStoreOptions = {},
    root = this.path("store"),
  ): Promise<JournalStore> {
    return openFolderStore(root, { durability, ...options });
  }

  reference(): ReferenceFile {
    return new ReferenceFile(this.path("reference"));
  }

  /**
   * A session of a million records, open, made when it is first asked for. What is seen on the way there goes to
   * `ages`.
   */
  async longSession(ages: AgePoint[]): Promise<LongSession> {
    if (this.#long) return this.#long;
    const root = this.path("long");
    const store = await openFolderStore(root, { durability: "process" });
    const id = newId();
    const journal = await store.create(id, []);
    const fillTo = async (records: number): Promise<number> => {
      await fill(journal, this.entries, records - journal.head);
      return journal.head;
    };
    const append = (entry: Entry) => journal.append(entry.record);
    ages.push(...(await growSession(this, append, fillTo, this.size(1_000_000, 150_000))));
    this.#long = { root, id, store, journal };
    return this.#long;
  }

  /**
   * Starts a task of child.ts. Children find compiled code in a cache, as installed packages need no stripping of
   * types.
   */
  spawnChild(task: readonly string[], flags: readonly string[] = []): ChildProcess {
    const program = ["--conditions=holdfast-source", ...flags, join(import.meta.dirname, "child.ts")];
    return spawn(process.execPath, [...program, ...task], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, NODE_COMPILE_CACHE: join(this.folder, "compiled") },
    });
  }

  /** Runs a task of child.ts, and returns what it found. */
  async child(task: readonly string[]): Promise<unknown> {
    const child = this.spawnChild(task);
    let output = "";
    child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    const [status] = (await once(child, "close")) as [number | null];
    if (status !== 0) throw new Error(`${task[0]} ended with ${status}`);
    return JSON.parse(output.trim().split("\n").at(-1)!);
  }

  /** What is being done, for those who wait. */
  say(line: string): void {
    this.#say(line);
  }

  /** Removes what the rows so far have made, but for the long session, which rows share. */
  clear(): void {
    for (const name of fs.readdirSync(this.folder)) {
      const path = join(this.folder, name);
      if (path !== this.#long?.root && name !== "compiled") fs.rmSync(path, { recursive: true, force: true });
    }
  }

  async remove(): Promise<void> {
    await this.#long?.store.close();
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}
