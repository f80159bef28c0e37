import type { Fields } from "../../contract/shapes.ts";
import type { SourceFile } from "../../files/source-file.ts";
import type { Line } from "./log.ts";

const HEAD_BYTES = 2 ** 19;
const KEY_CHARS_MAX = 251;

/** A header for a log without one. DeepSeek Harness compares it with the folders in which the log lies. */
export function makeHeader(lines: readonly Line[], file: SourceFile, folder: string, project: string): Fields {
  const times = lines.flatMap(({ time }) => (time > 0 ? [time] : []));
  const createdAt = times.reduce((first, time) => Math.min(first, time), times[0] ?? 0);
  const cwd = project === "_no-cwd" ? null : folderOf(project, file);
  return {
    ...{ type: "session", version: 0, id: decoded(folder), createdAt },
    ...(cwd !== null && { cwd }),
    delegationDepth: 0,
  };
}

/** The folder in which the agent worked: one that the log names, and after which the project's folder is called. */
function folderOf(project: string, file: SourceFile): string {
  const head = Buffer.from(file.read(0, HEAD_BYTES)).toString("utf8");
  const tried = new Set<string>();
  for (const [path] of head.matchAll(/\/[^\s"'`\\<>|]+/g))
    for (let part = path; part.length > 1; part = part.slice(0, part.lastIndexOf("/"))) {
      const plain = part.replace(/[.,:;)\]}]+$/, "");
      if (tried.has(plain)) break;
      tried.add(plain);
      if (keyOf(plain) === project) return plain;
    }
  // Any folder with this key passes; which one it was, the log does not say.
  return `/${decoded(project.replace(/^--|--$/g, "")).replaceAll("-", "/")}`;
}

/** How DeepSeek Harness names the folder of a project. */
function keyOf(path: string): string {
  const readable = path.replaceAll(/[/\\:]+/g, "-").replaceAll(/[^A-Za-z0-9._-]/g, (unit) => escaped(unit));
  return `--${(readable.replace(/^-+/, "") || "root").slice(0, KEY_CHARS_MAX)}--`;
}

const escaped = (unit: string): string => `~${unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
const decoded = (name: string): string =>
  name.replaceAll(/~([0-9A-F]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
