import { readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { basename, join } from "node:path";

/**
 * The process that uses a session, in words; null if there is none, or if this system does not say (it has no /proc,
 * or the process belongs to another user). Either it has one of the files open, or its command line names the session:
 * some agents open their files only to write.
 */
export function userOf(paths: readonly string[], session: string): string | null {
  const files = new Set(paths.map((path) => quietly(() => realpathSync(path)) ?? path));
  const identities = new Set(paths.flatMap((path) => identityOf(path) ?? []));
  const own = ownProcesses();
  for (const name of namesIn("/proc")) {
    if (!/^\d+$/.test(name) || name === String(process.pid)) continue;
    if (hasOpen(name, files, identities)) return wordsOf(name, "has it open");
    if (isResuming(name, session, own)) return wordsOf(name, "was started with this session");
  }
  return null;
}

function hasOpen(process: string, files: ReadonlySet<string>, identities: ReadonlySet<string>): boolean {
  const descriptors = join("/proc", process, "fd");
  for (const descriptor of namesIn(descriptors)) {
    const link = join(descriptors, descriptor);
    // Asking for the link first: a look at what is behind it could wait for a network.
    if (!files.has(linkOf(link))) continue;
    const identity = identityOf(link);
    if (identity !== null && identities.has(identity)) return true;
  }
  return false;
}

const ID_CHARS_MIN = 16;

/**
 * Whether an argument is the id of the session: `claude --resume <id>`, `--resume=<id>`. Of the processes that started
 * this one, those that ran the doctor name the session too; an agent that runs it in its own session does not.
 */
function isResuming(process: string, session: string, own: ReadonlySet<string>): boolean {
  if (session.length < ID_CHARS_MIN) return false;
  const args = textOf(process, "cmdline").split("\0").slice(1);
  if (own.has(process) && args.includes("doctor")) return false;
  return args.some((arg) => arg === session || arg.endsWith(`=${session}`));
}

/** This process and those that started it. */
function ownProcesses(): ReadonlySet<string> {
  const own = new Set([String(process.pid)]);
  for (let next = String(process.ppid); next !== "0" && next !== "" && !own.has(next); ) {
    own.add(next);
    next = /^PPid:\s*(\d+)/m.exec(textOf(next, "status"))?.[1] ?? "";
  }
  return own;
}

function wordsOf(process: string, what: string): string {
  const name = textOf(process, "comm").trim() || basename(textOf(process, "cmdline").split("\0")[0] ?? "");
  return `process ${process}${name === "" ? "" : ` (${name})`} ${what}`;
}

function textOf(process: string, name: string): string {
  return quietly(() => readFileSync(join("/proc", process, name), "utf8")) ?? "";
}

export function namesIn(folder: string): string[] {
  return quietly(() => readdirSync(folder)) ?? [];
}

export function linkOf(path: string): string {
  return quietly(() => readlinkSync(path)) ?? "";
}

function identityOf(path: string): string | null {
  const stat = quietly(() => statSync(path));
  return stat && `${stat.dev}:${stat.ino}`;
}

/** Processes end, and those of others do not let us look. */
export function quietly<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (error instanceof Error && "syscall" in error) return null;
    throw error;
  }
}
