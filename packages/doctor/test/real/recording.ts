import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Place, Unit } from "./agent.ts";

/**
 * Homes as real programs left them (packages/doctor/test/recordings). Every one was written in `ROOT`, so that its
 * bytes name no other machine. `placeRecording` puts one anywhere else, with the paths inside it changed to fit.
 */
export const ROOT = "/tmp/holdfast-lab";
const FOLDER = join(import.meta.dirname, "../recordings");

export interface RecordedSession {
  readonly id: string;
  /** What the program itself showed its model when it resumed this session. */
  readonly units: readonly Unit[];
}

export interface Recording {
  /** The format: a folder of recordings. */
  readonly format: string;
  readonly program: string;
  readonly version: string;
  readonly story: string;
  readonly recorded: string;
  readonly sessions: readonly RecordedSession[];
  /** The permissions of each file, which Git does not keep. */
  readonly modes: Readonly<Record<string, string>>;
}

/** All of them, or those of one format. */
export function listRecordings(format?: string): Recording[] {
  return readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
    .filter((path) => basename(path) === "recording.json")
    .toSorted()
    .map((path) => JSON.parse(readFileSync(join(FOLDER, path), "utf8")) as Recording)
    .filter((recording) => format === undefined || recording.format === format);
}

const folderOf = ({ format, version, story }: Pick<Recording, "format" | "version" | "story">): string =>
  join(FOLDER, format, version, story);

/** A recording that was put somewhere: the units of its sessions name the files there. */
export interface PlacedRecording extends Place {
  readonly sessions: readonly RecordedSession[];
}

/** Copies a recorded home below `root`. The paths in it then name the files there, in databases too. */
export function placeRecording(recording: Recording, root: string): PlacedRecording {
  const from = join(folderOf(recording), "home");
  const place = { home: join(root, "home"), work: join(root, "work") };
  mkdirSync(place.work, { recursive: true });
  // Inside compressed files the paths stay, and so must the names that the program derives from them.
  let isMoved = false;
  for (const [path, mode] of Object.entries(recording.modes)) {
    const bytes = gunzipSync(readFileSync(join(from, `${path}.gz`)));
    const isMovable = isText(bytes) || isDatabase(bytes);
    isMoved ||= isMovable;
    const to = join(place.home, isMovable ? moved(path, root) : path);
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, isText(bytes) ? moved(bytes.toString("utf8"), root) : bytes);
    if (isDatabase(bytes)) moveDatabase(to, root);
    chmodSync(to, Number.parseInt(mode, 8));
  }
  const sessions = JSON.stringify(recording.sessions);
  return { ...place, sessions: JSON.parse(isMoved ? moved(sessions, root) : sessions) as RecordedSession[] };
}

/** Saves what a program wrote, without what `isWanted` leaves out. */
export function saveRecording(
  recording: Omit<Recording, "modes">,
  { home }: Place,
  isWanted: (path: string) => boolean,
): void {
  const to = folderOf(recording);
  rmSync(to, { recursive: true, force: true });
  const modes: Record<string, string> = {};
  for (const path of readdirSync(home, { recursive: true, encoding: "utf8" }).toSorted()) {
    if (!isWanted(path)) continue;
    const from = join(home, path);
    const stats = statSync(from);
    if (!stats.isFile()) continue;
    modes[path] = (stats.mode & 0o777).toString(8);
    mkdirSync(dirname(join(to, "home", path)), { recursive: true });
    if (isDatabase(readFileSync(from))) foldLog(from);
    writeFileSync(join(to, "home", `${path}.gz`), gzipSync(readFileSync(from), { level: 9 }));
  }
  writeFileSync(join(to, "recording.json"), `${JSON.stringify({ ...recording, modes }, null, 2)}\n`);
}

const isDatabase = (bytes: Buffer): boolean => bytes.subarray(0, 16).toString("latin1") === "SQLite format 3\0";
const isText = (bytes: Buffer): boolean => Buffer.from(bytes.toString("utf8")).equals(bytes) && !isDatabase(bytes);

/** Some programs name a folder after the path of another, with other characters in it. */
const NAMES = [(path: string) => path, (path: string) => path.replaceAll(/[^a-zA-Z0-9]/g, "-")];

function moved(text: string, root: string): string {
  return NAMES.reduce((result, name) => result.replaceAll(name(ROOT), name(root)), text);
}

/** Moves what is in the write-ahead log into the file: a recording has no log, and no free pages. */
function foldLog(path: string): void {
  const database = new DatabaseSync(path);
  database.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

/** Rows hold paths too. Everything but them stays as the program wrote it. */
function moveDatabase(path: string, root: string): void {
  const database = new DatabaseSync(path);
  const tables = database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    .all() as { name: string }[];
  for (const { name } of tables.filter((table) => !/_(?:data|idx|content|docsize|config)$|^sqlite_/.test(table.name))) {
    const columns = database.prepare(`SELECT name FROM pragma_table_info(?)`).all(name) as { name: string }[];
    for (const { name: column } of columns)
      database
        .prepare(
          `UPDATE "${name}" SET "${column}" = replace("${column}", ?, ?) WHERE typeof("${column}") = 'text' AND instr("${column}", ?)`,
        )
        .run(ROOT, root, ROOT);
  }
  database.close();
}
