import { cpSync } from "node:fs";
import { join } from "node:path";
import type { Session, Store } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { place } from "../../place.ts";
import type { Voice } from "../dialects/dialect-voices.ts";
import type { Made } from "./sync-agents.ts";

const CHANGES_DISK = ["makeFolder", "rename", "remove", "removeFolder"];
const CHANGES_FILE = ["write", "writeAt", "truncate"];

/**
 * Stores on the real disk that keep what a kill would leave behind: before each change of the disk, a copy of all
 * sessions.
 */
export class CrashingStore implements AsyncDisposable {
  readonly #places: (Disposable & { path: string })[] = [];
  readonly #stores: Store[] = [];
  readonly #homes = new WeakMap<Session<Made>, string>();
  /** Where copies are made of, and those that were made. */
  #watched: string | null = null;
  #copies: string[] = [];

  async create(voice: Voice): Promise<Session<Made>> {
    const { path, store } = await this.#open(this.#place());
    const session = await store.create<Made>({ dialect: voice.dialect as Made, draftMs: 1 });
    this.#homes.set(session, path);
    return session;
  }

  /** What other processes find that come after a kill at each step of `act`, and after its end. */
  async killedIn(session: Session<Made>, act: () => Promise<unknown>): Promise<Session<Made>[]> {
    this.#watched = this.#homes.get(session)!;
    this.#copies = [];
    await act();
    this.#copy(this.#watched);
    this.#watched = null;
    const found: Session<Made>[] = [];
    for (const path of this.#copies) {
      const { store } = await this.#open(path);
      const killed = await store.resume<Made>(session.id, { draftMs: 1 });
      this.#homes.set(killed, path);
      found.push(killed);
    }
    return found;
  }

  async #open(path: string): Promise<{ path: string; store: Store }> {
    const disk = this.#disk(path);
    const open: Parameters<typeof openStoreWith>[0] = (given) => openFolderStore(path, { ...given, disk });
    const store = await openStoreWith(open, { durability: "process", recordsToolStarts: true });
    this.#stores.push(store);
    return { path, store };
  }

  #place(): string {
    const here = place();
    this.#places.push(here);
    return here.path;
  }

  #copy(from: string): void {
    const to = this.#place();
    cpSync(join(from, "sessions"), join(to, "sessions"), { recursive: true });
    this.#copies.push(to);
  }

  #disk(path: string): Disk {
    const before = <T extends object>(of: T, changes: readonly string[]): T =>
      new Proxy(of, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name, target);
          if (typeof member !== "function") return member;
          return (...given: unknown[]) => {
            if (this.#watched === path && changes.includes(String(name))) this.#copy(path);
            return member.apply(target, given);
          };
        },
      });
    const open: Disk["open"] = (file, mode) => before<DiskFile>(nodeDisk.open(file, mode), CHANGES_FILE);
    return before<Disk>({ ...nodeDisk, open }, CHANGES_DISK);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.close();
    for (const here of this.#places) here[Symbol.dispose]();
  }
}
