import { createHash } from "node:crypto";
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { joined, plain, RESULT_CHARS_MAX } from "./bounded.ts";

/** Where the output of a command is kept, and the status that it ended with. */
export interface OutputFiles {
  readonly log: string;
  readonly exit: string;
}

/** The pid is part of the name, since servers repeat their call ids (R9). */
export function outputFiles(outputs: string, call: string, pid: number): OutputFiles {
  const name = `${safeName(call)}.${pid}`;
  return { log: join(outputs, `${name}.log`), exit: join(outputs, `${name}.exit`) };
}

/** Those of a process that is in the journal. By its pid, if they have another name: where ids repeat, a tool may know its call by the id that the model was shown (R9). */
export function filesOfProcess(outputs: string, call: string, pid: number): OutputFiles {
  const own = outputFiles(outputs, call, pid);
  if (existsSync(own.log) || !existsSync(outputs)) return own;
  const end = `.${pid}.log`;
  const logs = readdirSync(outputs).flatMap((name) => (name.endsWith(end) ? [join(outputs, name)] : []));
  const [newest] = logs.map((log) => ({ log, at: statSync(log).mtimeMs })).sort((a, b) => b.at - a.at);
  return newest ? { log: newest.log, exit: newest.log.replace(/log$/u, "exit") } : own;
}

/** Ids of calls may be any text; two of them never get the same name. */
export function safeName(call: string): string {
  if (/^[A-Za-z0-9_][A-Za-z0-9_-]{0,79}$/u.test(call)) return call;
  const hash = createHash("sha256").update(call).digest("hex").slice(0, 16);
  return `${call.replaceAll(/[^A-Za-z0-9_]+/gu, "-").slice(0, 40)}~${hash}`;
}

/** What the wrapper wrote when the command had ended; `not-begun`: the agent was gone before it let the command begin. */
export function exitOf({ exit }: OutputFiles): number | "not-begun" | null {
  const text = readIfThere(exit);
  if (text === "not-begun\n") return "not-begun";
  return text !== null && /^\d{1,3}\n$/u.test(text) ? Number(text) : null;
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

/** The beginning and the end of the log: however long it is, only these are read. Empty if there is none. */
export function outputOf({ log }: OutputFiles, max: number = RESULT_CHARS_MAX): string {
  let fd: number;
  try {
    fd = openSync(log, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
  try {
    const { size } = fstatSync(fd);
    if (size <= max) return plain(textAt(fd, 0, size));
    const half = Math.floor(max / 2);
    // Cut where a character begins.
    const head = textAt(fd, 0, half).replace(/(?<!\uFFFD)\uFFFD+$/u, "");
    const tail = textAt(fd, size - half, half).replace(/^\uFFFD+/u, "");
    return plain(joined(head, tail, size - 2 * half, "bytes", `the whole is in ${log}`));
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
