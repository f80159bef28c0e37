import { ACP_ROOMS } from "./rules/acp-rooms.ts";
import { ADAPTERS_ROOMS } from "./rules/adapters-rooms.ts";
import { CLI_ROOMS } from "./rules/cli-rooms.ts";
import { CLOUDFLARE_ROOMS } from "./rules/cloudflare-rooms.ts";
import { DOCTOR_ROOMS } from "./rules/doctor-rooms.ts";
import { POSTGRES_ROOMS } from "./rules/postgres-rooms.ts";
import { checkImport, type PackageRooms } from "./rules/rooms.ts";
import { SERVER_ROOMS } from "./rules/server-rooms.ts";
import { TESTKIT_ROOMS } from "./rules/testkit-rooms.ts";
import { WEB_ROOMS } from "./rules/web-rooms.ts";

/** The rules that keep the layers apart (docs/ARCHITECTURE.md), as pure functions of a file's path and text. */

export interface Violation {
  readonly path: string;
  readonly line: number;
  readonly rule: string;
}

const LIBRARY = "packages/holdfast/src/";
const LINES_MAX = 500;
const COLUMNS_MAX = 120;
const COMMENT = /^\s*(?:\/\/|\*|\/\*\*)/;

/**
 * What each room of the library may import: itself, and the rooms below it. Data flows down this list: a room knows
 * nothing of those behind it.
 */
const BASE = ["errors.ts", "defined.ts", "number-options.ts", "session-state.ts", "journal/", "dialects/", "text/"];
const ROOMS: readonly (readonly [room: string, below: readonly string[]])[] = [
  ["journal/", ["errors.ts", "defined.ts"]],
  ["text/", ["journal/texts.ts"]],
  ["disk/", ["errors.ts", "defined.ts", "journal/record.ts"]],
  ["dialects/", ["defined.ts", "journal/record.ts", "text/"]],
  ["stores/folder/", ["errors.ts", "defined.ts", "journal/", "disk/", "stores/*.ts"]],
  ["stores/sqlite/", ["errors.ts", "defined.ts", "journal/", "disk/", "stores/*.ts"]],
  ["stores/memory/", ["errors.ts", "defined.ts", "journal/", "stores/*.ts"]],
  [
    "stores/open.ts",
    [
      "errors.ts",
      "defined.ts",
      "load-part.ts",
      "journal/",
      "stores/folder/",
      "stores/memory/",
      "stores/sqlite/",
      "stores/address.ts",
      "stores/schemes.ts",
    ],
  ],
  ["stores/", ["errors.ts", "defined.ts", "journal/", "disk/"]],
  ["redact/", ["journal/record.ts", "dialects/shape.ts"]],
  ["conversation/", BASE],
  ["view/", [...BASE, "conversation/"]],
  ["account/", [...BASE, "conversation/", "view/"]],
  ["admit/", [...BASE, "redact/", "conversation/"]],
  ["replace/", [...BASE, "conversation/", "view/", "admit/"]],
  ["sync/", [...BASE, "conversation/", "view/", "admit/", "replace/"]],
  ["listing/", [...BASE, "conversation/records/attributes.ts"]],
  ["search/", [...BASE, "jitter.ts", "disk/"]],
  [
    "session/store.ts",
    [...BASE, "redact/", "conversation/", "view/", "admit/", "replace/", "sync/", "session/"].concat([
      "listing/",
      "search/",
      "disk/",
      "load-part.ts",
      "stores/open.ts",
      "stores/schemes.ts",
    ]),
  ],
  [
    "session/open-store.ts",
    ["load-part.ts", "stores/default-address.ts", "session/store-surface.ts", "session/store.ts"],
  ],
  ["load-part.ts", ["errors.ts", "disk/descriptors.ts", "disk/failure.ts"]],
  [
    "session/",
    [...BASE, "jitter.ts", "redact/", "conversation/", "view/", "admit/", "replace/", "sync/", "listing/", "search/"],
  ],
  ["guard/", ["defined.ts", "session/surface.ts", "session/store-surface.ts", "session/guarded.ts"]],
  ["address.ts", ["stores/address.ts", "stores/schemes.ts", "stores/shown-address.ts"]],
  ["store.ts", ["journal/", "stores/", "session/store.ts"]],
  [
    "internal.ts",
    [
      ...["defined.ts", "jitter.ts", "number-options.ts", "session-state.ts", "journal/", "text/", "stores/"],
      ...[
        "admit/refusals.ts",
        "session/turn/tool-call.ts",
        "session/work/due.ts",
        "account/words.ts",
        "view/model-words.ts",
        "disk/",
        "search/",
      ],
    ],
  ],
];

/** The packages whose rooms stand in a table of their own. */
export const PACKAGES: readonly PackageRooms[] = [
  ...[ACP_ROOMS, ADAPTERS_ROOMS, CLI_ROOMS, CLOUDFLARE_ROOMS, DOCTOR_ROOMS, POSTGRES_ROOMS, SERVER_ROOMS],
  ...[TESTKIT_ROOMS, WEB_ROOMS],
];

const IMPORT = /(?:^|[;\s}])(?:from|import)\s*\(?\s*"([^"]+)"/g;

export function checkFile(path: string, text: string): Violation[] {
  const found: Violation[] = [];
  const lines = text.split("\n");
  const add = (index: number, rule: string) => found.push({ path, line: lineOf(text, index), rule });

  if (/\.tsx?$/.test(path) && path.includes("/src/") && lines.length > LINES_MAX) {
    add(0, `a source file has at most ${LINES_MAX} lines; this one has ${lines.length}: split it`);
  }
  for (const [at, line] of lines.entries()) {
    if (/\.tsx?$/.test(path) && COMMENT.test(line) && [...line].length > COLUMNS_MAX)
      found.push({ path, line: at + 1, rule: `a comment is at most ${COLUMNS_MAX} columns wide: wrap it` });
  }
  if (/\.test\.ts$/.test(path)) {
    for (const match of text.matchAll(/\b(?:test|it|describe)\.(?:only|skip|todo|fails)\b/g)) {
      add(match.index, "no test is focused, skipped or left to do");
    }
  }
  const [own] = /^packages\/[^/]+\/src\//.exec(path) ?? [];
  for (const match of own === undefined ? [] : text.matchAll(IMPORT)) {
    if (match[1]!.startsWith(".") && !resolve(path, match[1]!).startsWith(own!))
      add(match.index, "a package imports only the entries of another, never its files");
  }
  const tabled = PACKAGES.find(({ sources }) => path.startsWith(sources));
  if (tabled) {
    const here = path.slice(tabled.sources.length);
    for (const match of text.matchAll(IMPORT)) {
      const rule = match[1]!.startsWith(".") ? checkImport(tabled, here, resolve(here, match[1]!)) : null;
      if (rule !== null) add(match.index, rule);
    }
  }
  if (!path.startsWith(LIBRARY)) return found;

  const here = path.slice(LIBRARY.length);
  for (const match of text.matchAll(IMPORT)) {
    const target = match[1]!;
    if (/^(?:node:)?fs(?:\/|$)/.test(target) && !here.startsWith("disk/"))
      add(match.index, "only disk/ imports node:fs");
    if (!target.startsWith(".") && !target.startsWith("node:"))
      add(match.index, "the library has no runtime dependency");
    if (target.startsWith(".") && !mayImport(here, resolve(here, target))) {
      add(match.index, `${here} may not import ${resolve(here, target)}: a lower layer never imports a higher one`);
    }
  }
  if (here !== "stores/lease.ts") {
    for (const match of text.matchAll(/["'`][^"'`\n]*\bleases["'`/]/g))
      add(match.index, "only the lease module names a lease path");
  }
  return found;
}

function mayImport(here: string, target: string): boolean {
  const room = ROOMS.find(([prefix]) => here.startsWith(prefix));
  if (!room) return true;
  const [own, below] = room;
  if (target.startsWith(own)) return own !== "stores/" || !target.slice(own.length).includes("/");
  return below.some((allowed) => {
    if (allowed.endsWith("/*.ts"))
      return target.startsWith(allowed.slice(0, -4)) && !target.slice(allowed.length - 4).includes("/");
    return target === allowed || (allowed.endsWith("/") && target.startsWith(allowed));
  });
}

/** `../errors.ts`, seen from `journal/lines/encode.ts`, is `errors.ts`. */
function resolve(here: string, target: string): string {
  const parts = here.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/** Versions are exact, and the library depends on nothing. */
export function checkManifest(path: string, text: string): Violation[] {
  const manifest = JSON.parse(text) as Record<string, Record<string, string> | undefined>;
  const found: Violation[] = [];
  for (const field of ["dependencies", "devDependencies", "optionalDependencies", "overrides"]) {
    for (const [name, version] of Object.entries(manifest[field] ?? {})) {
      if (!/^(?:npm:[\w@/-]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version))
        found.push({ path, line: 1, rule: `${field}: ${name} ${version} is not an exact version` });
    }
  }
  if (path === "packages/holdfast/package.json" && manifest["dependencies"]) {
    found.push({ path, line: 1, rule: "the library has no runtime dependency" });
  }
  return found;
}

/** No address of a registry in the lock file. */
export function checkLockFile(path: string, text: string): Violation[] {
  const match = /"resolved": "https?:/.exec(text);
  return match
    ? [{ path, line: lineOf(text, match.index), rule: "the lock file names the address of a registry" }]
    : [];
}
