import * as fs from "node:fs";
import type { Entry } from "./messages.ts";

/**
 * What anybody would write first, and what the journal is measured against: JSON.stringify and a write to an open file.
 */
export class ReferenceFile {
  readonly #fd: number;

  constructor(path: string) {
    this.#fd = fs.openSync(path, "a", 0o600);
  }

  readonly write = (entry: Entry): void => {
    fs.writeSync(this.#fd, `${JSON.stringify(entry.message)}\n`);
  };

  readonly writeAndSyncNow = (entry: Entry): void => {
    this.write(entry);
    fs.fdatasyncSync(this.#fd);
  };

  readonly writeAndSync = (entry: Entry): Promise<void> => {
    this.write(entry);
    return this.#sync();
  };

  /** The messages in one writev and one fdatasync. */
  readonly writeBatch = (entries: readonly Entry[]): Promise<void> => {
    fs.writevSync(
      this.#fd,
      entries.map((entry) => Buffer.from(`${JSON.stringify(entry.message)}\n`)),
    );
    return this.#sync();
  };

  #sync(): Promise<void> {
    return new Promise((resolve, reject) => fs.fdatasync(this.#fd, (error) => (error ? reject(error) : resolve())));
  }

  close(): void {
    fs.closeSync(this.#fd);
  }
}
