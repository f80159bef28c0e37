import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { hashOf, isErrno } from "./file-state.ts";

const KEPT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * A folder of notes and of the bytes of noted files, each named by its hash: what has another content is not what was
 * kept. Nothing is synced: after a power cut a note may be missing, and then nothing is said about the folder.
 */
export class KeptFiles {
  readonly #folder: string;

  /** `folder`: one that only this user can write to. Made when something is kept. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns its name. Throws system errors. */
  keep(bytes: Uint8Array, hash = hashOf(bytes)): string {
    if (this.read(hash) !== null) return hash;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const made = join(this.#folder, `${hash}.${process.pid}.tmp`);
    writeFileSync(made, bytes, { flag: "w", mode: 0o600 });
    renameSync(made, join(this.#folder, hash));
    return hash;
  }

  /** Null if it is not there, or not what was kept. */
  read(hash: string): Buffer | null {
    if (!/^[0-9a-f]{64}$/u.test(hash)) return null;
    let fd: number;
    try {
      const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
      fd = openSync(join(this.#folder, hash), flags);
    } catch (error) {
      if (isErrno(error, ["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM", "ENXIO"])) return null;
      throw error;
    }
    try {
      const found = fstatSync(fd);
      if (!found.isFile() || found.size > KEPT_BYTES_MAX) return null;
      const bytes = readFileSync(fd);
      return hashOf(bytes) === hash ? bytes : null;
    } finally {
      closeSync(fd);
    }
  }

  /** Removes everything else. */
  keepOnly(hashes: ReadonlySet<string>): void {
    for (const name of readdirSync(this.#folder))
      if (!hashes.has(name)) rmSync(join(this.#folder, name), { force: true });
  }
}
