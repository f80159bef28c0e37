import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Place, Step, Subject, SubjectCapabilities, SubjectOptions } from "@holdfast/testkit";
import type { JournalStore } from "holdfast/store";
import { openers } from "./openers.ts";

const WRITER = fileURLToPath(new URL("writer-that-dies.ts", import.meta.url));

/** What each store on a disk must support. */
const capabilities: Record<keyof typeof openers, SubjectCapabilities> = {
  folder: { durability: "power", lease: "kernel", sync: true, shared: true, pack: true, dies: true },
  sqlite: { durability: "power", lease: "kernel", sync: true, shared: false, pack: false, dies: true },
};

/** The command that runs a TypeScript program on the sources. */
const onSources = [process.execPath, "--conditions=holdfast-source"];

/**
 * A store on a real disk, whose writers can be killed because they are processes. `runtime` is the command that runs
 * them.
 */
export function subjectOnDisk(
  kind: keyof typeof openers,
  name: string,
  options: Record<string, unknown> = {},
  runtime: readonly string[] = onSources,
): Subject {
  return {
    name,
    capabilities: capabilities[kind],
    fresh: async () => new DiskPlace(kind, await mkdtemp(join(tmpdir(), "holdfast-conformance-")), options, runtime),
  };
}

class DiskPlace implements Place {
  readonly #kind: keyof typeof openers;
  readonly #folder: string;
  readonly #options: Record<string, unknown>;
  readonly #runtime: readonly string[];

  constructor(
    kind: keyof typeof openers,
    folder: string,
    options: Record<string, unknown>,
    runtime: readonly string[],
  ) {
    this.#kind = kind;
    this.#folder = folder;
    this.#options = options;
    this.#runtime = runtime;
  }

  open(options: SubjectOptions = {}): Promise<JournalStore> {
    return openers[this.#kind](join(this.#folder, "store"), { ...this.#options, ...options });
  }

  writeAndDie(id: string, steps: readonly Step[]): Promise<void> {
    const [program, ...flags] = this.#runtime as [string, ...string[]];
    const args = [...flags, WRITER, this.#kind, join(this.#folder, "store"), id, JSON.stringify(steps)];
    return new Promise((resolve, reject) => {
      execFile(program, args, (error, _, stderr) => {
        if (error?.signal === "SIGKILL") resolve();
        else reject(new Error(`the writer was not killed but ended by itself: ${error?.message ?? ""} ${stderr}`));
      });
    });
  }

  async remove(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}
