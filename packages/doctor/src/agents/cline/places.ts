import { basename, dirname, join } from "node:path";
import type { Environment, SessionPlace } from "../../contract/agent.ts";
import { fieldsOf, textIn } from "../../contract/shapes.ts";
import { type Door, Refused } from "../../files/door.ts";
import { parsed } from "./format.ts";

/** Where Cline keeps sessions: the command in `sessions/<id>`, the extension of editors in `tasks/<id>`. */

export const API = "api_conversation_history.json";
export const SCREEN = "ui_messages.json";
const MESSAGES = ".messages.json";
const EXTENSION = "saoudrizwan.claude-dev";
const EDITORS = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"];
const SERVERS = [".vscode-server", ".vscode-remote", ".cursor-server", ".windsurf-server"];
const MANIFEST_BYTES_MAX = 2 ** 20;

export function homesOf({ CLINE_DATA_DIR, CLINE_DIR, XDG_CONFIG_HOME, APPDATA }: Environment, home: string): string[] {
  const settings = [
    XDG_CONFIG_HOME || join(home, ".config"),
    join(home, "Library", "Application Support"),
    ...(APPDATA ? [APPDATA] : []),
  ];
  const users = [
    ...settings.flatMap((folder) => EDITORS.map((editor) => join(folder, editor, "User"))),
    ...SERVERS.map((folder) => join(home, folder, "data", "User")),
  ];
  const data = CLINE_DATA_DIR || join(CLINE_DIR || join(home, ".cline"), "data");
  return [data, ...users.map((user) => join(user, "globalStorage", EXTENSION))];
}

export function* placesIn(root: string, door: Door): Generator<SessionPlace> {
  if (door.kindOf(root) === "file") {
    yield placeOfFile(root, door);
    return;
  }
  const entries = [...door.list(root)];
  const names = new Set(entries.map(({ name }) => name));
  if (isSession(root, names)) {
    yield placeOf(root, door);
    return;
  }
  const isHome = names.has("sessions") || names.has("tasks");
  for (const { path, name, kind } of entries) {
    if (kind !== "folder") continue;
    if (isHome && name !== "sessions" && name !== "tasks") continue;
    const inner = [...door.list(path)];
    if (isSession(path, new Set(inner.map((entry) => entry.name)))) yield placeOf(path, door);
    else if (isHome)
      for (const entry of inner)
        if (
          entry.kind === "folder" &&
          isSession(entry.path, new Set([...door.list(entry.path)].map((each) => each.name)))
        )
          yield placeOf(entry.path, door);
  }
}

export function isSession(folder: string, names: ReadonlySet<string>): boolean {
  const id = basename(folder);
  return (
    names.has(API) ||
    names.has(SCREEN) ||
    names.has(`${id}${MESSAGES}`) ||
    (names.has(`${id}.json`) && /^\d+_/.test(id))
  );
}

function placeOf(folder: string, door: Door): SessionPlace {
  const id = basename(folder);
  const files = [...door.list(folder)].filter(({ kind }) => kind === "file");
  const isTask = files.some(({ name }) => name === API || name === SCREEN);
  const path = join(folder, isTask ? API : `${id}${MESSAGES}`);
  const own = files.filter(({ name }) => name.endsWith(".json") && !name.startsWith("."));
  const parts = own.map((file) => file.path).filter((part) => part !== path);
  const cwd = isTask ? null : textIn(manifestOf(path, door)["cwd"]);
  return { agent: "cline", id, path, parts, ...(cwd !== null && { folder: cwd }) };
}

/** A file of a session stands for it; another one is a session of its own. */
function placeOfFile(path: string, door: Door): SessionPlace {
  const folder = dirname(path);
  const name = basename(path);
  if (
    name === API ||
    name === SCREEN ||
    name === `${basename(folder)}${MESSAGES}` ||
    name === `${basename(folder)}.json`
  )
    return placeOf(folder, door);
  return { agent: "cline", id: name.replace(/(?:\.messages)?\.json$/, ""), path, parts: [] };
}

/** What the extension showed the user; null if there is no such file. A repaired draft has another name. */
export function screenOf({ path, parts }: SessionPlace, door: Door): string | null {
  const named = parts.find((part) => basename(part) === SCREEN);
  if (named !== undefined) return named;
  const isDraft = (part: string): boolean => basename(part).startsWith(".holdfast-") && isScreenAt(part, door);
  return parts.find(isDraft) ?? (basename(path) === API ? join(dirname(path), SCREEN) : null);
}

function isScreenAt(path: string, door: Door): boolean {
  using file = door.openRaw(path);
  return SCREEN_START.test(Buffer.from(file.read(0, 128)).toString("latin1"));
}

export const SCREEN_START = /^(?:\ufeff|\xef\xbb\xbf)?\s*\[\s*\{\s*"ts"\s*:\s*\d+\s*,\s*"type"\s*:\s*"(?:say|ask)"/;

/** Whether it is a list of messages, and not the file of the command. */
export function isListAt(path: string, door: Door): boolean {
  if (basename(path) === API) return true;
  if (isOfCommand(path) || door.facts(path) === null) return false;
  using file = door.openRaw(path);
  return /^(?:\xef\xbb\xbf)?\s*\[/.test(Buffer.from(file.read(0, 64)).toString("latin1"));
}

export const isOfCommand = (path: string): boolean => path.endsWith(MESSAGES);

export const manifestPath = (messages: string): string => `${messages.slice(0, -MESSAGES.length)}.json`;

/** What the command knows of a session; nothing if it cannot be read. */
export function manifestOf(messages: string, door: Door): Readonly<Record<string, unknown>> {
  const path = manifestPath(messages);
  try {
    if (door.facts(path) === null) return {};
    using file = door.openRaw(path);
    return fieldsOf(parsed(Buffer.from(file.read(0, MANIFEST_BYTES_MAX)).toString("utf8")));
  } catch (error) {
    if (error instanceof Refused) return {};
    throw error;
  }
}
