import { createHash, randomBytes } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect as connectTo, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import { ProcessFamily, startOf } from "../wrap/process-family.ts";
import { type AgentFacts, controlFrame, FRAMES_VERSION, FrameReader } from "./frames.ts";

/** What a supervisor writes beside its socket. */
export interface SupervisorFacts {
  readonly pid: number;
  readonly started: string | null;
  readonly agent: AgentFacts | null;
}

/** Variables that differ each time an editor is started, and mean nothing to an agent. */
const VOLATILE =
  /^(?:_|SHLVL|PWD|OLDPWD|WINDOWID|XDG_ACTIVATION_TOKEN|DESKTOP_STARTUP_ID|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID|TERM_SESSION_ID|NODE_COMPILE_CACHE|.*_PID)$/;
/** How long an agent has to end by itself after its supervisor was killed. */
const ORPHAN_MS = 1_000;
/** A supervisor ends its agent in less than this. */
const RETIRE_MS = 12_000;
const CONNECT_MS = 2_000;
const LOOK_MS = 50;
const NAME = /^([0-9a-f]{12})-[0-9a-f]{8}\.sock$/;

export const factsFile = (socket: string): string => `${socket}.json`;

/** Which agents can stand for each other: the same command, in the same folder, with the same environment and store. */
export function agentKey(command: readonly string[], store: string): string {
  const env = Object.entries(process.env)
    .filter(([name]) => !VOLATILE.test(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const facts = [FRAMES_VERSION, process.execPath, command, process.cwd(), store, env];
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 12);
}

/** A path for the socket of a new supervisor. On Windows: the name of a pipe. */
export function newSocket(folder: string, key: string): string {
  const name = `${key}-${randomBytes(4).toString("hex")}.sock`;
  return process.platform === "win32" ? `\\\\.\\pipe\\holdfast-${name}` : join(folder, name);
}

/** The length of the longest path that `newSocket` makes in this folder, and that systems have room for. */
export const SOCKET_NAME_CHARS: number = 1 + 12 + 1 + 8 + ".sock".length;
export const SOCKET_PATH_BYTES_MAX = 103;

/** The sockets in the folder, with this key or with any, that belong to this user. */
export function socketsIn(folder: string, key?: string): string[] {
  if (process.platform === "win32") return [];
  return readdirSync(folder).flatMap((name) => {
    const found = NAME.exec(name);
    if (!found || (key !== undefined && found[1] !== key)) return [];
    const path = join(folder, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat?.isSocket() && stat.uid === process.getuid?.() ? [path] : [];
  });
}

/** The same with those whose supervisor was killed after it had closed its socket, in the middle of its end. */
export function leftIn(folder: string): string[] {
  if (process.platform === "win32") return [];
  const left = readdirSync(folder).flatMap((name) => {
    const path = join(folder, name.slice(0, -".json".length));
    if (!name.endsWith(".json") || !NAME.test(name.slice(0, -".json".length))) return [];
    const stat = lstatSync(join(folder, name), { throwIfNoEntry: false });
    return stat?.isFile() && stat.uid === process.getuid?.() ? [path] : [];
  });
  return [...new Set([...socketsIn(folder), ...left])];
}

/** Connects; null if nobody listens there. */
export async function connected(path: string): Promise<Socket | null> {
  const socket = connectTo(path);
  const timer = setTimeout(() => socket.destroy(new Error("no answer")), CONNECT_MS);
  try {
    return await new Promise<Socket | null>((resolve) => {
      socket.once("connect", () => resolve(socket)).once("error", () => resolve(null));
    });
  } finally {
    clearTimeout(timer);
  }
}

function factsOf(socket: string): SupervisorFacts | null {
  try {
    // Reading anything else might never end.
    if (!lstatSync(factsFile(socket)).isFile()) return null;
    return JSON.parse(readFileSync(factsFile(socket), "utf8")) as SupervisorFacts;
  } catch {
    // It has ended, or was killed before it wrote them.
    return null;
  }
}

/** Removes the socket of a supervisor that was killed, and ends its agent. */
export async function removeStale(socket: string): Promise<void> {
  const facts = factsOf(socket);
  if (facts && (await isAlive(facts))) return;
  if (facts?.agent) await endOrphan(facts.agent);
  for (const path of [socket, factsFile(socket)]) rmSync(path, { force: true });
}

/** Ends an agent whose supervisor was killed, and everything that it started. */
export async function endOrphan({ pid, started, mark }: AgentFacts): Promise<void> {
  const isSame = started !== null && (await startOf(pid)) === started;
  // It has the end of its input, which most agents end at. Another process may have its pid by now.
  const family = new ProcessFamily(isSame ? pid : -1, mark);
  await family.members();
  const until = performance.now() + ORPHAN_MS;
  while ((await family.members())?.length !== 0 && performance.now() < until) await passed(LOOK_MS);
  await family.end(ORPHAN_MS);
}

async function isAlive({ pid, started }: SupervisorFacts): Promise<boolean> {
  return started !== null && (await startOf(pid)) === started;
}

/**
 * Another process has a session open that an editor wants. If that is a supervisor without an editor, it ends now.
 * Returns whether it is gone.
 */
export async function retire(folder: string, pid: number): Promise<boolean> {
  const socket = socketsIn(folder).find((path) => factsOf(path)?.pid === pid);
  if (socket === undefined) return (await startOf(pid)) === null;
  const facts = factsOf(socket);
  const connection = await connected(socket);
  if (connection && (await isRefused(connection))) return false;
  const until = performance.now() + RETIRE_MS;
  while (facts && (await isAlive(facts)) && performance.now() < until) await passed(LOOK_MS);
  return !facts || !(await isAlive(facts));
}

/** Whether the supervisor has an editor, and so does not retire. */
async function isRefused(socket: Socket): Promise<boolean> {
  socket.on("error", () => undefined).write(controlFrame({ type: "retire" }));
  // One that was stopped accepts connections, and says nothing.
  socket.setTimeout(RETIRE_MS, () => socket.destroy());
  const reader = new FrameReader();
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>)
      for (const frame of reader.push(chunk)) if ("control" in frame && frame.control.type === "busy") return true;
  } catch {
    // It ended in the middle of it.
  }
  return false;
}
