import { isUtf8 } from "node:buffer";
import { basename, dirname, join } from "node:path";
import { type Problem, problem } from "../../contract/problem.ts";
import type { Place } from "../../contract/record.ts";
import { fieldsOf, textIn } from "../../contract/shapes.ts";
import { type Door, Refused } from "../../files/door.ts";
import type { Listed, Row, Rows } from "./rows.ts";

/**
 * What older versions kept: `storage/session/<project>/<session>.json`, `storage/message/<session>/<message>.json` and
 * `storage/part/<message>/<part>.json`.
 */

const BYTES_MAX = 64 * 2 ** 20;

/** A session of older versions, as far as its own file says it. */
export interface FolderSession {
  readonly id: string;
  readonly path: string;
  readonly parent: string | null;
  readonly folder: string | null;
}

export function* sessionsInFolder(folder: string, door: Door): Generator<FolderSession> {
  for (const { path, name, kind } of door.list(folder)) {
    if (kind === "folder") yield* sessionsInFolder(path, door);
    if (kind === "file" && /^ses_.*\.json$/.test(name)) yield sessionAt(path, door);
  }
}

export function sessionAt(path: string, door: Door): FolderSession {
  const id = basename(path, ".json");
  let value: unknown = null;
  try {
    value = JSON.parse(rowAt(path, id, door)?.text ?? "null");
  } catch {
    // It is reported when it is read.
  }
  const { parentID, directory } = fieldsOf(value);
  return { id, path, parent: textIn(parentID), folder: textIn(directory) };
}

/** The files of a session beside its own, with those of its sub-agents. */
export function* filesOf(path: string, children: readonly FolderSession[], door: Door): Generator<string> {
  const storage = storageOf(path);
  for (const session of [basename(path, ".json"), ...children.map(({ id }) => id)])
    for (const message of door.list(join(storage, "message", session))) {
      if (message.kind !== "file") continue;
      yield message.path;
      for (const part of door.list(join(storage, "part", basename(message.name, ".json"))))
        if (part.kind === "file") yield part.path;
    }
  for (const child of children) yield child.path;
}

const storageOf = (path: string): string => dirname(dirname(dirname(path)));

export class FolderRows implements Rows {
  readonly #path: string;
  readonly #door: Door;
  readonly #children: readonly FolderSession[];

  constructor(path: string, children: readonly FolderSession[], door: Door) {
    this.#path = path;
    this.#children = children;
    this.#door = door;
  }

  *problems(): Generator<Problem> {
    const size = this.#door.facts(this.#path)?.size;
    if (size === 0) yield problem("empty-file", { file: this.#path, line: null, offset: null });
  }

  session(id: string): Listed {
    return this.#listed(this.#children.find((child) => child.id === id)?.path ?? this.#path);
  }

  children(id: string): readonly string[] {
    return this.#children.flatMap((child) => (child.parent === id ? [child.id] : []));
  }

  messages(session: string): Iterable<Listed> {
    return this.#in(join(storageOf(this.#path), "message", session));
  }

  parts(_session: string, message: string): Iterable<Listed> {
    return this.#in(join(storageOf(this.#path), "part", message));
  }

  twins(): Iterable<never> {
    return [];
  }

  *#in(folder: string): Generator<Listed> {
    // The ids of OpenCode rise with time.
    for (const { path, name, kind } of this.#door.list(folder))
      if (kind === "file" && name.endsWith(".json")) yield this.#listed(path);
  }

  #listed(path: string): Listed {
    const id = basename(path, ".json");
    return { id, place: { file: path, line: null, offset: null }, row: rowAt(path, id, this.#door) };
  }
}

function rowAt(path: string, id: string, door: Door): Row | null {
  const place: Place = { file: path, line: null, offset: null };
  try {
    using file = door.openRaw(path);
    const bytes = file.read(0, Math.min(file.size, BYTES_MAX));
    return { id, place, bytes, text: Buffer.from(bytes).toString("utf8"), isUtf8: isUtf8(bytes), at: null };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return null;
  }
}
