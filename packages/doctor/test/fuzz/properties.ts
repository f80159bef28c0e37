import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readConversations } from "../../src/conversation/conversation.ts";
import {
  AGENTS,
  type Agent,
  type Diagnosis,
  Door,
  diagnose,
  fix,
  type Plan,
  type ProblemKind,
  planFix,
  Refused,
  type SessionPlace,
  type SessionRecord,
  sessionsAt,
} from "../../src/index.ts";
import { linesIn } from "./corpus.ts";
import type { Input } from "./input.ts";

/** What holds for every input, whatever is in it. */

/** A property that an input breaks. */
export class Broken extends Error {
  override readonly name = "Broken";
  readonly property: string;
  constructor(property: string, words: string, cause?: unknown) {
    super(`${property}: ${words}`, { cause });
    this.property = property;
  }
}

export interface Thoroughness {
  /** Lets the executor write, sync and back up. Otherwise a plan is applied here. */
  readonly executes: boolean;
  /** Asks every agent whose file it is. */
  readonly detects: boolean;
}

/** Throws `Broken`. `scratch`: a folder for inputs, one after another. */
export async function checkInput(input: Input, scratch: string, how: Thoroughness): Promise<void> {
  const folder = join(scratch, input.folder);
  const path = join(folder, input.name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, input.bytes);
  try {
    await checkFile(input, path, how);
  } finally {
    rmSync(path, { force: true });
  }
}

async function checkFile({ agent, bytes, known }: Input, path: string, how: Thoroughness): Promise<void> {
  if (how.detects) await never("detecting throws nothing", () => detect(path));
  const sessions = await never("finding throws nothing", () => {
    using door = new Door();
    return [...agent.find(path, door)].slice(0, 4);
  });
  for (const session of sessions) {
    const records = await never("reading throws nothing", () => recordsOf(agent, session));
    checkKept(bytes, known, records);
    const before = await never("diagnosing throws nothing", () => diagnose(agent, session));
    await never("a conversation is made without an error", async () => {
      using door = new Door();
      await readConversations(agent, session, door);
    });
    // A file beside the conversation can stand for a session whose own file is not here.
    if (session.isShared || session.path !== path) continue;
    if (how.executes) await checkFix(agent, session, join(path, "../../backups"));
    else await checkPlan(agent, session, before, records);
    writeFileSync(path, bytes);
  }
}

async function never<T>(property: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Broken(property, error instanceof Error ? error.message : String(error), error);
  }
}

async function detect(path: string): Promise<void> {
  using door = new Door();
  for await (const finding of sessionsAt(path, AGENTS, { environment: {}, home: "/nowhere" }, door))
    if (finding.agent === null) return;
}

async function recordsOf(agent: Agent, session: SessionPlace): Promise<SessionRecord[]> {
  using door = new Door();
  const records: SessionRecord[] = [];
  for (const item of await agent.read(session, door))
    if (item.type === "record") records.push({ ...item.record, bytes: Buffer.from(item.record.bytes) });
  return records;
}

const isWhole = ({ state }: SessionRecord): boolean => state === "intact" || state === "recovered";
const keyOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

/** A line that the agent wrote, alone between two line feeds, is read. */
function checkKept(bytes: Buffer, known: ReadonlySet<string>, records: readonly SessionRecord[]): void {
  if (known.size === 0) return;
  const read = new Map<string, number>();
  for (const record of records) {
    const key = keyOf(record.bytes);
    if (isWhole(record)) read.set(key, (read.get(key) ?? 0) + 1);
  }
  for (const [index, line] of linesIn(bytes).entries()) {
    const key = line.toString("latin1");
    if (!known.has(key)) continue;
    const left = (read.get(key) ?? 0) - 1;
    if (left < 0) throw new Broken("no readable record is lost", `line ${index + 1}`);
    read.set(key, left);
  }
}

/** Damage to text alone: its repair touches no record that is whole. */
const TEXT_DAMAGE: ReadonlySet<ProblemKind> = new Set([
  ...(["glued-records", "nul-run", "raw-line-break", "raw-control-character", "line-separator", "crlf"] as const),
  ...(["split-record", "unclosed-record", "invalid-utf8", "byte-order-mark", "garbage"] as const),
]);

async function checkPlan(
  agent: Agent,
  session: SessionPlace,
  before: Diagnosis,
  records: readonly SessionRecord[],
): Promise<void> {
  const plan = await applyPlan(agent, session);
  if (plan === null) return;
  const isOfText = before.problems.every(({ kind }) => TEXT_DAMAGE.has(kind));
  checkEdits(plan, session.path, isOfText ? records : []);
  const after = await never("diagnosing throws nothing", () => diagnose(agent, session));
  if (!isBetter(before, after)) return;
  // An answer that no model gave, at the end, is taken out.
  if (!before.problems.some(({ kind }) => kind === "synthetic-tail"))
    checkSpeech(records, await recordsOf(agent, session));
  const fixed = readFileSync(session.path);
  const again = await applyPlan(agent, session);
  if (again === null || readFileSync(session.path).equals(fixed)) return;
  const twice = await never("diagnosing throws nothing", () => diagnose(agent, session));
  const left = after.problems.map(({ kind }) => kind).join(", ");
  if (isBetter(after, twice)) throw new Broken("a second fix changes nothing", `after the first: ${left}`);
}

/** As the executor decides it. */
function isBetter(before: Diagnosis, after: Diagnosis): boolean {
  const kinds = new Set(before.problems.map(({ kind }) => kind));
  return after.problems.length < before.problems.length && after.problems.every(({ kind }) => kinds.has(kind));
}

async function applyPlan(agent: Agent, session: SessionPlace): Promise<Plan | null> {
  using door = new Door();
  const plan = await never("planning throws nothing", () => refusedIsNone(() => planFix(agent, session, door)));
  const old = readFileSync(session.path);
  const change = plan?.changes.find(({ path }) => path === session.path);
  if (!plan || !change) return null;
  if (change.type === "replace") writeFileSync(session.path, readFileSync(change.from));
  else if (change.type === "edit") {
    const parts: Uint8Array[] = [];
    let at = 0;
    for (const { offset, length, bytes } of change.edits) {
      parts.push(old.subarray(at, offset), bytes);
      at = offset + length;
    }
    writeFileSync(session.path, Buffer.concat([...parts, old.subarray(at)]));
  } else return null;
  return plan;
}

async function refusedIsNone<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

function checkEdits({ changes }: Plan, path: string, records: readonly SessionRecord[]): void {
  for (const change of changes) {
    if (change.type !== "edit") continue;
    const intact = records.filter(
      ({ state, place }) => state === "intact" && change.path === path && place.file === path,
    );
    let at = 0;
    let next = 0;
    for (const { offset, length, grade } of change.edits) {
      if (offset < at || length < 0 || offset + length > change.size)
        throw new Broken("edits are in order and inside of the file", `byte ${offset}, ${length} bytes, after ${at}`);
      at = offset + length;
      while (next < intact.length && endOf(intact[next]!) <= offset) next++;
      // Others are written again, such as with another number.
      const touched = intact[next]?.place.offset ?? at;
      if (touched < at && grade === "unknown")
        throw new Broken("a repair of text leaves whole records alone", `byte ${touched}`);
    }
  }
}

const endOf = ({ place, length }: SessionRecord): number => (place.offset ?? 0) + length;

/** What people and models said in whole records is there after the fix. */
function checkSpeech(before: readonly SessionRecord[], after: readonly SessionRecord[]): void {
  const said = new Set(after.flatMap(({ units }) => units.map((unit) => JSON.stringify(unit))));
  for (const record of before) {
    if (record.state !== "intact") continue;
    for (const unit of record.units)
      if ((unit.type === "user" || unit.type === "assistant") && !said.has(JSON.stringify(unit)))
        throw new Broken("a fix loses nothing that was said", `line ${record.place.line}`);
  }
}

async function checkFix(agent: Agent, session: SessionPlace, backups: string): Promise<void> {
  const run = () => never("fixing throws nothing", () => refusedIsNone(() => fix(agent, session, { backups })));
  const old = readFileSync(session.path);
  const fixed = await run();
  const once = readFileSync(session.path);
  if (fixed === null) {
    if (!once.equals(old)) throw new Broken("what is not fixed is not changed", session.id);
    return;
  }
  if ((await run()) !== null || !readFileSync(session.path).equals(once))
    throw new Broken("a second fix changes nothing", session.id);
}
