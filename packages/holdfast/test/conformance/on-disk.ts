import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Place, Step, Subject, SubjectCapabilities, SubjectOptions } from "@holdfast/testkit";
import type { JournalStore } from "holdfast/store";
import { openers } from "./openers.ts";

const WRITER = fileURLToPath(new URL("writer-that-dies.ts", import.meta.url));

/** A store on a real disk, whose writers can be killed because they are processes. */
export function subjectOnDisk(
  kind: keyof typeof openers,
  name: string,
  capabilities: SubjectCapabilities,
  options: Record<string, unknown> = {},
): Subject {
  return {
    name,
    capabilities,
    fresh: async () => new DiskPlace(kind, await mkdtemp(join(tmpdir(), "holdfast-conformance-")), options),
  };
}

class DiskPlace implements Place {
  readonly #kind: keyof typeof openers;
  readonly #folder: string;
  readonly #options: Record<string, unknown>;

  constructor(kind: keyof typeof openers, folder: string, options: Record<string, unknown>) {
    this.#kind = kind;
    this.#folder = folder;
    this.#options = options;
  }

  open(options: SubjectOptions = {}): Promise<JournalStore> {
    return openers[this.#kind](join(this.#folder, "store"), { ...this.#options, ...options });
  }

  writeAndDie(id: string, steps: readonly Step[]): Promise<void> {
    const args = [
      "--conditions=holdfast-source",
      WRITER,
      this.#kind,
      join(this.#folder, "store"),
      id,
      JSON.stringify(steps),
    ];
    return new Promise((resolve, reject) => {
      execFile(process.execPath, args, (error, _, stderr) => {
        if (error?.signal === "SIGKILL") resolve();
        else reject(new Error(`the writer was not killed but ended by itself: ${error?.message ?? ""} ${stderr}`));
      });
    });
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
