import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError, EXIT } from "../exit.ts";
import type { Files } from "./receipt.ts";
import type { Task } from "./task.ts";

/**
 * The demo's own folder, with two copies of the project and a store for each: one for the agent that is killed, one for
 * the agent that is left alone.
 */
export interface DemoFolder {
  readonly path: string;
  readonly here: AgentFolder;
  readonly undisturbed: AgentFolder;
  remove(): void;
}

export interface AgentFolder {
  readonly work: string;
  readonly store: string;
}

export function makeDemoFolder({ files }: Task): DemoFolder {
  const path = temporaryFolder();
  const room = (name: string): AgentFolder => {
    const work = join(path, name, "project");
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(work, file)), { recursive: true });
      writeFileSync(join(work, file), text);
    }
    return { work, store: join(path, name, "store") };
  };
  return {
    path,
    here: room("killed"),
    undisturbed: room("undisturbed"),
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }),
  };
}

function temporaryFolder(): string {
  const place = tmpdir();
  try {
    return realpathSync(mkdtempSync(join(place, "holdfast-demo-")));
  } catch (error) {
    throw new CommandError(
      EXIT.failed,
      "NO_PLACE",
      `The demo could not create a folder in ${place} (${(error as Error).message}). Set TMPDIR to another folder.`,
      error,
    );
  }
}

export function filesIn(folder: string): Files {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = paths.filter((path) => statSync(join(folder, path)).isFile());
  return Object.fromEntries(files.sort().map((path) => [path, readFileSync(join(folder, path), "utf8")]));
}
