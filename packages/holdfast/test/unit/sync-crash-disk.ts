import { cpSync } from "node:fs";
import { join } from "node:path";
import { openFolderStore, openStoreWith, type Session, type Store } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { place } from "../place.ts";
import type { Voice } from "./dialect-voices.ts";
import type { Made } from "./sync-agents.ts";

const CHANGES_DISK = ["makeFolder", "rename", "remove", "removeFolder"] as const;
const CHANGES_FILE = ["write", "writeAt", "truncate"] as const;

/** A store on the real disk that keeps what a kill would leave behind: before each change of the disk, a copy of all sessions. */
export class CrashingStore implements AsyncDisposable {
  readonly #here = place();
  readonly #copies: (Disposable & { path: string })[] = [];
  readonly #stores: Store[] = [];
  #isWatched = false;
  #store: Store | null = null;

  async create(voice: Voice): Promise<Session<Made>> {
    const disk = this.#disk();
    this.#store = await openStoreWith((given) => openFolderStore(this.#here.path, { ...given, disk }), {
      durability: "process",
    });
    return this.#store.create<Made>({ dialect: voice.dialect as Made, draftMs: 1, intents: true });
  }

  /** What other processes find that come after a kill at each step of `act`, and after its end. */
  async killedIn(session: Session<Made>, act: () => Promise<unknown>): Promise<Session<Made>[]> {
    const from = this.#copies.length;
    this.#isWatched = true;
    await act();
    this.#copy();
    this.#isWatched = false;
    const found: Session<Made>[] = [];
    for (const { path } of this.#copies.slice(from)) {
      const store = await openStoreWith((given) => openFolderStore(path, given), { durability: "process" });
      this.#stores.push(store);
      found.push(await store.resume<Made>(session.id, { draftMs: 1, intents: true }));
    }
    return found;
  }

  #copy(): void {
    const copy = place();
    this.#copies.push(copy);
    cpSync(join(this.#here.path, "sessions"), join(copy.path, "sessions"), { recursive: true });
  }

  #disk(): Disk {
    const before = <T extends object>(of: T, changes: readonly string[]): T =>
      new Proxy(of, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name, target);
          if (typeof member !== "function") return member;
          return (...given: unknown[]) => {
            if (this.#isWatched && changes.includes(String(name))) this.#copy();
            return member.apply(target, given);
          };
        },
      });
    const open: Disk["open"] = (path, mode) => before<DiskFile>(nodeDisk.open(path, mode), CHANGES_FILE);
    return before<Disk>({ ...nodeDisk, open }, CHANGES_DISK);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.close();
    await this.#store?.close();
    for (const { [Symbol.dispose]: dispose } of this.#copies) dispose();
    this.#here[Symbol.dispose]();
  }
}
