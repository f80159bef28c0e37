import { dirname } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "../../contract/shapes.ts";
import { type Door, Refused } from "../../files/door.ts";
import { scan } from "../../scan/scan.ts";
import { format } from "./format.ts";

/** How much of its neighbours is read for one damaged session. */
const BYTES_MAX = 2 ** 29;
const FILES_MAX = 500;

/**
 * Records of a session that stand in another one too. `--fork-session` and a resume in older versions begin a new file
 * with a copy of the whole conversation: the same records, with the id of the new session.
 */
export class Forks {
  /** By their ids, in the order of their file. */
  readonly #records = new Map<string, Fields>();
  readonly #results = new Map<string, Fields>();
  readonly #children = new Map<string, Fields[]>();
  /** The record before each, in the order of the copy. */
  readonly #previous = new Map<string, string>();
  /** The records of the largest copy of the whole session. */
  #whole: readonly Fields[] = [];

  /** `ids`: of records that the session has, or should have. A copy has some of them, or names the session. */
  static async of(session: SessionPlace, ids: ReadonlySet<string>, door: Door): Promise<Forks> {
    const forks = new Forks();
    let bytes = 0;
    for (const path of neighboursOf(session.path, door)) {
      const size = door.facts(path)?.size ?? 0;
      if (bytes + size > BYTES_MAX) continue;
      bytes += size;
      const copy = await copyIn(path, session.id, ids, door);
      if (copy !== null) forks.#add(copy, session.id);
    }
    return forks;
  }

  record(uuid: string): Fields | null {
    return this.#records.get(uuid) ?? null;
  }

  /** The record with the result of a call. */
  result(call: string): Fields | null {
    return this.#results.get(call) ?? null;
  }

  /** These records in the order of their copy. */
  inOrder(records: ReadonlyMap<string, Fields>): Fields[] {
    return [...this.#records.keys()].flatMap((uuid): Fields[] => (records.has(uuid) ? [records.get(uuid)!] : []));
  }

  previous(uuid: string): string | null {
    return this.#previous.get(uuid) ?? null;
  }

  /** What hangs on a record, in the order of the copy. */
  children(uuid: string | null): readonly Fields[] {
    return uuid === null ? [] : (this.#children.get(uuid) ?? []);
  }

  get whole(): readonly Fields[] {
    return this.#whole;
  }

  #add({ records, copied }: Copy, session: string): void {
    const own = new Map(records.map((value) => [value, ownRecord(value, session)]));
    const whole = copied.map((value) => own.get(value)!);
    for (const value of whole) {
      const parent = textIn(value["parentUuid"]);
      const known = parent === null ? [] : (this.#children.get(parent) ?? []);
      if (parent !== null && known.every(({ uuid }) => uuid !== value["uuid"]))
        this.#children.set(parent, [...known, value]);
    }
    if (whole.length > this.#whole.length) this.#whole = whole;
    let previous: string | null = null;
    for (const value of own.values()) {
      const uuid = String(value["uuid"]);
      if (previous !== null && !this.#previous.has(uuid)) this.#previous.set(uuid, previous);
      previous = uuid;
      if (this.#records.has(uuid)) continue;
      this.#records.set(uuid, value);
      for (const call of callsAnswered(value)) this.#results.set(call, value);
    }
  }
}

function neighboursOf(path: string, door: Door): string[] {
  return [...door.list(dirname(path))]
    .filter((entry) => entry.kind === "file" && entry.name.endsWith(".jsonl") && entry.path !== path)
    .slice(0, FILES_MAX)
    .map((entry) => entry.path);
}

interface Copy {
  /** All records of the conversation in it. */
  readonly records: readonly Fields[];
  /** Those that it did not say itself. */
  readonly copied: readonly Fields[];
}

/** Null if the file shares no record with the session. */
async function copyIn(path: string, session: string, ids: ReadonlySet<string>, door: Door): Promise<Copy | null> {
  const records: Fields[] = [];
  let forkedAt: number | null = null;
  let isCopy = false;
  let marked = 0;
  try {
    using file = await door.open(path);
    for (const { value, state } of scan(file.chunks(), format)) {
      if (state !== "intact") continue;
      const fields = fieldsOf(value);
      if (typeof fields["uuid"] === "string" && fields["isSidechain"] !== true) {
        records.push(fields);
        if ((fields["requestSessionId"] ?? fieldsOf(fields["forkedFrom"])["sessionId"]) === session)
          marked = records.length;
        isCopy ||= marked > 0 || ids.has(fields["uuid"]);
      } else forkedAt ??= timeIn(fields["timestamp"]);
      if (records.length > IDLE_MAX && !isCopy) return null;
    }
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
  if (!isCopy) return null;
  // What it said itself was written later than its first note.
  const before = forkedAt ?? Number.NEGATIVE_INFINITY;
  const copied = records.filter(
    (value, index) => index < marked || (timeIn(value["timestamp"]) ?? Number.POSITIVE_INFINITY) < before,
  );
  return { records, copied };
}

/** How many records of a file are looked at before it is no copy: one has the session's at its beginning. */
const IDLE_MAX = 2_000;

/** The record as it is in the session that it was copied from. */
function ownRecord(value: Fields, session: string): Fields {
  const { requestSessionId: _, forkedFrom: __, ...rest } = value;
  return { ...rest, sessionId: session };
}

function callsAnswered(value: Fields): string[] {
  return listIn(fieldsOf(value["message"])["content"]).flatMap((block) => {
    const { type, tool_use_id } = fieldsOf(block);
    return type === "tool_result" && typeof tool_use_id === "string" ? [tool_use_id] : [];
  });
}
