import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Durability, type FolderStoreOptions, type JournalStore, newId, openFolderStore } from "holdfast";
import { type Entry, makeEntries } from "./messages.ts";
import { ReferenceFile } from "./reference.ts";

/** What every row works with: the messages, a folder that is removed afterwards, and how much is to be done. */
export class Bench {
  readonly quick: boolean;
  readonly folder: string;
  readonly entries: readonly Entry[];
  readonly #say: (line: string) => void;
  #names = 0;

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

  folderStore(durability: Durability, options: FolderStoreOptions = {}): Promise<JournalStore> {
    return openFolderStore(this.path("store"), { durability, ...options });
  }

  reference(): ReferenceFile {
    return new ReferenceFile(this.path("reference"));
  }

  /** What is being done, for those who wait. */
  say(line: string): void {
    this.#say(line);
  }

  /** Removes everything that the rows so far have made, so that the disk holds one row at a time. */
  clear(): void {
    for (const name of fs.readdirSync(this.folder))
      fs.rmSync(join(this.folder, name), { recursive: true, force: true });
  }

  remove(): void {
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}
