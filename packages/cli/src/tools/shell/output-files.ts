import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync, type Stats } from "node:fs";
import { join } from "node:path";
import { joinEnds, RESULT_CHARS_MAX, withoutNul } from "../results/result-text.ts";

/** The files that hold a command's output and its exit status. */
export interface OutputFiles {
  readonly log: string;
  readonly exit: string;
}

/** The name includes the pid because servers reuse call ids (R9). */
export function outputFiles(outputs: string, call: string, pid: number): OutputFiles {
  const name = `${safeName(call)}.${pid}`;
  return { log: join(outputs, `${name}.log`), exit: join(outputs, `${name}.exit`) };
}

/**
 * The output files of a process in the journal. Falls back to finding them by pid alone: where ids repeat, a tool may
 * know its call by the id that the model saw (R9).
 */
export function filesOfProcess(outputs: string, call: string, pid: number): OutputFiles {
  const own = outputFiles(outputs, call, pid);
  const folder = lstatSync(outputs, { throwIfNoEntry: false });
  if (!folder?.isDirectory() || lstatSync(own.log, { throwIfNoEntry: false })) return own;
  const end = `.${pid}.log`;
  const logs = readdirSync(outputs).flatMap((name) => {
    const log = join(outputs, name);
    const found = name.endsWith(end) ? lstatSync(log, { throwIfNoEntry: false }) : undefined;
    return found && isPlainFile(found) ? [{ log, at: found.mtimeMs }] : [];
  });
  const [newest] = logs.sort((a, b) => b.at - a.at);
  return newest ? { log: newest.log, exit: newest.log.replace(/log$/u, "exit") } : own;
}

/** A file name for a call id, which may be any text. Distinct ids get distinct names. */
export function safeName(call: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9_-]{0,79}$/u.test(call)) return call;
  const hash = createHash("sha256").update(call).digest("hex").slice(0, 16);
  return `${call.replaceAll(/[^A-Za-z0-9_]+/gu, "-").slice(0, 40)}~${hash}`;
}

const EXIT_BYTES_MAX = 32;

/**
 * The status that the wrapper wrote when the command ended. `not-begun`: the agent died before it released the command.
 */
export function exitOf({ exit }: OutputFiles): number | "not-begun" | null {
  const text = withFile(exit, (fd, size) => (size > EXIT_BYTES_MAX ? null : textAt(fd, 0, size)));
  if (text === "not-begun\n") return "not-begun";
  return text !== null && /^\d{1,3}\n$/u.test(text) ? Number(text) : null;
}

/** The log; of a long one, only the start and the end are read. Empty if there is no log. */
export function outputOf({ log }: OutputFiles, max: number = RESULT_CHARS_MAX): string {
  const text = withFile(log, (fd, size) => {
    if (size <= max) return withoutNul(textAt(fd, 0, size));
    const half = Math.floor(max / 2);
    // Drop partial characters at the cuts.
    const head = textAt(fd, 0, half).replace(/(?<!\uFFFD)\uFFFD+$/u, "");
    const tail = textAt(fd, size - half, half).replace(/^\uFFFD+/u, "");
    return withoutNul(joinEnds(head, tail, size - 2 * half, "bytes", `the full output is in ${log}`));
  });
  return text ?? "";
}

/** Not a link, pipe or second name of another file: the store may have been prepared by someone else. */
function isPlainFile(found: Stats): boolean {
  return found.isFile() && found.nlink <= 1;
}

const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Null if there is no plain file at this path. */
function withFile<T>(path: string, read: (fd: number, size: number) => T): T | null {
  const before = lstatSync(path, { throwIfNoEntry: false });
  if (!before || !isPlainFile(before)) return null;
  let fd: number;
  try {
    fd = openSync(path, FLAGS);
  } catch (error) {
    // The file was removed, or replaced by a link, after lstat.
    if (["ENOENT", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
  try {
    const found = fstatSync(fd);
    return isPlainFile(found) ? read(fd, found.size) : null;
  } finally {
    closeSync(fd);
  }
}

function textAt(fd: number, position: number, length: number): string {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const read = readSync(fd, bytes, filled, length - filled, position + filled);
    if (read === 0) break;
    filled += read;
  }
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, filled));
}
