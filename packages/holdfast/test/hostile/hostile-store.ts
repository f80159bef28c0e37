import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { constants, crc32, zstdCompressSync } from "node:zlib";
import { newId, openStore, type Store } from "holdfast";

/**
 * Stores that somebody hostile, or an accident, has been at: each file of a session, and of the store, in turn replaced
 * by each thing that can be in its place. Seeded, so that a failure can be repeated. Whoever reads such a store must
 * not hang, not die, not run out of memory; must say what is wrong in a typed error; and must read everything else as
 * if nothing were wrong.
 */

/** What is replaced. */
export type Target = SessionTarget | StoreTarget;
export type SessionTarget = (typeof sessionTargets)[number];
export type StoreTarget = (typeof storeTargets)[number];

/** Files and folders of one session. */
export const sessionTargets = [
  "the session's folder",
  "the newest segment",
  "a sealed segment",
  "a packed segment",
  "a segment that does not exist yet",
  "a packed segment beside the newest",
  "a tail of the newest segment",
  "a tail of a sealed segment",
  "a temporary file",
  "the quarantine",
  "the lease",
  "the lease's words",
] as const;

/** Files and folders that all sessions share. What happens to these must not be felt by any of them. */
export const storeTargets = [
  "catalog.sqlite",
  "catalog.sqlite-wal",
  "catalog.sqlite-shm",
  "catalog.sqlite-journal",
  "search.sqlite",
  "search.sqlite-wal",
  "search.sqlite-shm",
  "search.sqlite-journal",
  "something in the trash",
  "something incoming",
] as const;

/** What can be in the place of a file. */
export interface Kind {
  readonly name: string;
  /** Puts it there. Nothing is there when it is called; the folder is. `original` is what was there. */
  readonly put: (path: string, around: Around) => void;
  /** Only root can make it. */
  readonly needsRoot?: true;
  /** It takes a second or more to be read by each who reads it. */
  readonly isSlow?: true;
}

export interface Around {
  /** The bytes that were there; empty if it was no file. */
  readonly original: Buffer;
  readonly session: string;
  /** A file elsewhere, and a folder with files in it, that nobody may read through a link, or change. */
  readonly precious: string;
  readonly preciousFolder: string;
  /** A number below `below`. */
  readonly random: (below: number) => number;
  /** A user that is neither root nor the one who reads. */
  readonly stranger: number;
}

const MIB = 1024 * 1024;

/** The line of a record with a right checksum, whatever is in it. */
export function sealed(members: Record<string, unknown> | string): Buffer {
  const text = typeof members === "string" ? members : JSON.stringify(members).slice(0, -1);
  return Buffer.from(`${text},"crc":"${crc32(text).toString(16).padStart(8, "0")}"}\n`);
}

const AT = "2026-11-15T02:30:00.123Z";
const header = (session: string, members: Record<string, unknown> = {}): Buffer =>
  sealed({ seq: 1, at: AT, kind: "segment", format: "1.0", session, segment: 1, epoch: 1, by: "nobody", ...members });
const write = (content: Buffer | string | ((around: Around) => Buffer)): Kind["put"] => {
  return (path, around) => writeFileSync(path, typeof content === "function" ? content(around) : content);
};
const after = (make: (around: Around) => Buffer | string): Kind["put"] =>
  write((around) => Buffer.concat([around.original, Buffer.from(make(around))]));

function sparse(path: string, bytes: number, content: Buffer = Buffer.alloc(0)): void {
  writeFileSync(path, content);
  const file = openSync(path, "r+");
  ftruncateSync(file, bytes);
  closeSync(file);
}

/**
 * A server that ends without closing leaves its socket. The name is relative: there are no longer ones than 107 bytes.
 */
function socket(path: string): void {
  const program = `require("net").createServer().listen(${JSON.stringify(basename(path))}, () => process.exit())`;
  execFileSync(process.execPath, ["-e", program], { cwd: dirname(path) });
}

const frame = (plain: Buffer, flags: Record<number, number> = {}): Buffer =>
  zstdCompressSync(plain, {
    params: { [constants.ZSTD_c_checksumFlag]: 1, [constants.ZSTD_c_contentSizeFlag]: 1, ...flags },
  });

/** Made once: compressing gigabytes takes a while. */
let bombFrame: Buffer | null = null;
function bomb(frames: number): Buffer {
  bombFrame ??= frame(Buffer.alloc(64 * MIB));
  return Buffer.concat(new Array<Buffer>(frames).fill(bombFrame));
}

/** Everything that can be in the place of any file. */
export const kinds: readonly Kind[] = [
  { name: "nothing", put: () => {} },
  { name: "an empty file", put: write("") },
  { name: "an empty folder", put: (path) => mkdirSync(path) },
  {
    name: "a folder with files",
    put: (path) => {
      mkdirSync(join(path, "below"), { recursive: true });
      writeFileSync(join(path, "000001.jsonl"), "x");
      writeFileSync(join(path, "below", "000001.jsonl"), "x");
    },
  },
  { name: "a link to a file elsewhere", put: (path, { precious }) => symlinkSync(precious, path) },
  { name: "a link to a folder elsewhere", put: (path, { preciousFolder }) => symlinkSync(preciousFolder, path) },
  { name: "a link to nothing", put: (path) => symlinkSync("/nowhere/at/all", path) },
  { name: "a link to itself", put: (path) => symlinkSync(path, path) },
  { name: "a link to /dev/zero", put: (path) => symlinkSync("/dev/zero", path) },
  { name: "a named pipe", put: (path) => void execFileSync("mkfifo", [path]) },
  { name: "a socket", put: socket },
  { name: "a device", needsRoot: true, put: (path) => void execFileSync("mknod", ["-m", "666", path, "c", "1", "5"]) },
  { name: "a hard link to a file elsewhere", put: (path, { precious }) => linkSync(precious, path) },
  {
    name: "a file of another user's",
    needsRoot: true,
    put: (path, { original, stranger }) => {
      writeFileSync(path, original);
      chmodSync(path, 0o644);
      chownSync(path, stranger, stranger);
    },
  },
  {
    name: "a file of root's",
    needsRoot: true,
    put: (path, { original }) => {
      writeFileSync(path, original);
      chmodSync(path, 0o600);
      chownSync(path, 0, 0);
    },
  },
  {
    name: "a folder of root's",
    needsRoot: true,
    put: (path) => {
      mkdirSync(path);
      chmodSync(path, 0o700);
      chownSync(path, 0, 0);
    },
  },
  {
    name: "a file that may not be read",
    put: (path, { original }) => {
      writeFileSync(path, original);
      chmodSync(path, 0);
    },
  },
  { name: "200 GB that are not there", isSlow: true, put: (path) => sparse(path, 200e9) },
  {
    name: "200 GB that are not there, behind what was there",
    isSlow: true,
    put: (path, { original }) => sparse(path, 200e9, original),
  },
  { name: "half of it", put: write(({ original }) => original.subarray(0, original.length >> 1)) },
  {
    name: "flipped bits",
    put: write(({ original, random }) => {
      const bytes = Buffer.from(original);
      for (let i = 0; i < 8 && bytes.length > 0; i++) bytes[random(bytes.length)]! ^= 1 << random(8);
      return bytes;
    }),
  },
  { name: "random bytes", put: write(({ random }) => Buffer.from(Array.from({ length: 4096 }, () => random(256)))) },
  { name: "NUL bytes", put: write(Buffer.alloc(8 * MIB)) },
  { name: "two million newlines", isSlow: true, put: write("\n".repeat(2_000_000)) },
  { name: "a million open brackets", put: write("[".repeat(1_000_000)) },
  { name: "a million levels", put: write(`${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}\n`) },
  { name: "ten million empty arrays", isSlow: true, put: write(`[${"[],".repeat(10_000_000)}1]\n`) },
  { name: "140 MB of beginnings of records", isSlow: true, put: write(Buffer.alloc(140 * MIB, '{"seq":')) },
  {
    name: "140 MB of records that are none",
    isSlow: true,
    put: write(Buffer.alloc(140 * MIB, '{"seq":1,"crc":"00000000"} ')),
  },
  // Lines with a right checksum that no writer writes.
  {
    name: "a record a million levels deep",
    put: after(() =>
      sealed(`{"seq":90,"at":"${AT}","kind":"x","deep":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}`),
    ),
  },
  {
    name: "the highest number that there is",
    put: after(() => sealed({ seq: Number.MAX_SAFE_INTEGER, at: AT, kind: "x" })),
  },
  { name: "a number beyond the highest", put: after(() => sealed('{"seq":9007199254740993,"at":"","kind":"x"')) },
  {
    name: "a mark far ahead",
    put: after(() => sealed({ seq: 90, synced: Number.MAX_SAFE_INTEGER, at: AT, kind: "x" })),
  },
  {
    name: "a unit without end",
    put: after(() => sealed({ seq: 90, unit: Number.MAX_SAFE_INTEGER, at: AT, kind: "x" })),
  },
  { name: "a header of an epoch to come", put: write(({ session }) => header(session, { epoch: 999_999_999 })) },
  { name: "a header of an epoch that is none", put: write(({ session }) => header(session, { epoch: -0.5 })) },
  { name: "a header of a newer format", put: write(({ session }) => header(session, { format: "99.0" })) },
  { name: "a header of no format", put: write(({ session }) => header(session, { format: { toString: 1 } })) },
  { name: "a header of another session", put: write(() => header(newId())) },
  {
    name: "records whose members are of other types",
    put: after(() =>
      Buffer.concat([
        sealed('{"seq":91,"at":"x","kind":"message","__proto__":{"polluted":true},"message":null,"turn":{},"id":[]'),
        sealed('{"seq":92,"at":"_","kind":"turn.started","turn":"x","constructor":1,"summary":[[[]]]'),
        sealed('{"seq":93,"at":"","kind":"session","title":{"a":1},"labels":7,"dialect":[]'),
        sealed(
          `{"seq":94,"at":"${"9".repeat(10_000)}","kind":"closed","summary":{"title":${"[".repeat(900)}${"]".repeat(900)}}`,
        ),
      ]),
    ),
  },
  { name: "JSON of somebody else's", put: write('{"pid":{"a":1},"host":[],"app":"\\u001b[2J","since":5}\n') },
  { name: "deep JSON of somebody else's", put: write(`${'{"pid":'.repeat(600)}1${"}".repeat(600)}`) },
  // Packed segments.
  { name: "zstd that unpacks to 5.7 GB", isSlow: true, put: (path) => writeFileSync(path, bomb(90)) },
  {
    name: "zstd that is cut off",
    put: (path) => writeFileSync(path, frame(Buffer.alloc(MIB, "x\n")).subarray(0, -3)),
  },
  {
    name: "frames that do not declare a size",
    put: (path) => writeFileSync(path, frame(Buffer.alloc(8 * MIB, "x\n"), { [constants.ZSTD_c_contentSizeFlag]: 0 })),
  },
  {
    name: "the beginning of a frame, over and over",
    put: write(Buffer.alloc(MIB, Buffer.from([0x28, 0xb5, 0x2f, 0xfd]))),
  },
  {
    name: "a database that never answers",
    put: (path) => {
      const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
      const columns =
        "1 AS segment, 1 AS size, 1 AS mtime, '' AS at, 1 AS head, 1 AS closed, 'x' AS summary, 1 AS key, 1 AS seq, '' AS crc, '' AS dialect, 0 AS blind";
      for (const version of [1, 2, 3]) {
        rmSync(path, { force: true });
        const database = new DatabaseSync(path);
        database.exec(
          `CREATE VIEW sessions AS WITH RECURSIVE endless(id) AS (SELECT 'x' UNION ALL SELECT id || 'x' FROM endless WHERE length(id) > 0) SELECT id, ${columns} FROM endless; PRAGMA user_version=${version}`,
        );
        database.close();
      }
    },
  },
];

export interface BadSession {
  readonly id: string;
  readonly target: SessionTarget;
  readonly kind: string;
}

export interface HostileStore {
  readonly root: string;
  /** Sessions that nothing happened to. */
  readonly healthy: readonly string[];
  readonly bad: readonly BadSession[];
  /** What nobody may have changed, and its content. */
  readonly precious: string;
  readonly preciousFolder: string;
}

export interface HostileOptions {
  readonly cases: readonly { readonly target: Target; readonly kind: Kind }[];
  readonly seed: number;
  /** The user who will read it, if this process is root: all that is not put there on purpose belongs to that one. */
  readonly reader?: number;
}

export const PRECIOUS = "precious content of a file elsewhere\n";

/** A store in `folder`, with one session for each case of a session, and what happened to the store itself. */
export async function makeHostileStore(folder: string, { cases, seed, reader }: HostileOptions): Promise<HostileStore> {
  const root = join(folder, "store");
  const random = randomOf(seed);
  const precious = join(folder, "precious");
  const preciousFolder = join(folder, "precious-folder");
  writeFileSync(precious, PRECIOUS, { mode: 0o600 });
  mkdirSync(preciousFolder);
  writeFileSync(join(preciousFolder, "000001.jsonl"), PRECIOUS);

  const healthy: string[] = [];
  const bad: BadSession[] = [];
  {
    await using store = await openStore(root, { durability: "process" });
    for (let i = 0; i < 3; i++) healthy.push(await makeSession(store, `healthy ${i}`));
    for (const { target, kind } of cases) {
      if (isSessionTarget(target))
        bad.push({ id: await makeSession(store, `bad ${kind.name}`), target, kind: kind.name });
    }
    // The derived files are there, and hold something.
    await store.list();
    await Array.fromAsync(store.search("question"));
  }
  if (reader !== undefined) give(folder, reader);
  const around = { precious, preciousFolder, random, stranger: 54_321 };
  let i = 0;
  for (const { target, kind } of cases) {
    const session = isSessionTarget(target) ? bad[i++]!.id : healthy[0]!;
    await replace(pathOf(root, session, target), kind, { ...around, session }, reader);
  }
  return { root, healthy, bad, precious, preciousFolder };
}

function isSessionTarget(target: Target): target is SessionTarget {
  return (sessionTargets as readonly string[]).includes(target);
}

/** Three segments of three epochs, the first of them packed. */
async function makeSession(store: Store, text: string): Promise<string> {
  const session = await store.create({ dialect: "anthropic", title: text });
  const { id } = session;
  const talk = async (): Promise<void> => {
    const open = await store.resume(id);
    const turn = await open.startTurn({ role: "user", content: `a question of ${text}` });
    await turn.append({ role: "assistant", content: [{ type: "text", text: "an answer ".repeat(30) }] });
    await turn.end();
    await open.replace([{ role: "user", content: `what was said before, ${text}` }], { reason: "compaction" });
    await open.close();
  };
  await session.close();
  await talk();
  await store.pack(id);
  await talk();
  return id;
}

function pathOf(root: string, session: string, target: Target): string {
  const folder = join(root, "sessions", session);
  const named = (pattern: RegExp, which: number): string =>
    join(
      folder,
      readdirSync(folder)
        .filter((name) => pattern.test(name))
        .sort()
        .at(which)!,
    );
  const plain = (which: number): string => named(/^\d{6}\.jsonl$/, which);
  switch (target) {
    case "the session's folder":
      return folder;
    case "the newest segment":
      return plain(-1);
    case "a sealed segment":
      return plain(0);
    case "a packed segment":
      return named(/\.zst$/, 0);
    case "a segment that does not exist yet":
      return join(folder, "000009.jsonl");
    case "a packed segment beside the newest":
      return `${plain(-1)}.zst`;
    case "a tail of the newest segment":
      return `${plain(-1)}.tail-${lstatSync(plain(-1)).size >> 1}`;
    case "a tail of a sealed segment":
      return `${plain(0)}.tail-${lstatSync(plain(0)).size}`;
    case "a temporary file":
      return `${plain(-1)}.0123456789ab.tmp`;
    case "the quarantine":
      return join(folder, "quarantine");
    case "the lease":
      return join(root, "leases", session);
    case "the lease's words":
      return join(root, "leases", `${session}.json`);
    case "something in the trash":
      return join(root, "trash", `${newId()}-1`);
    case "something incoming":
      return join(root, "incoming", newId());
    default:
      return join(root, target);
  }
}

async function replace(
  path: string,
  kind: Kind,
  around: Omit<Around, "original">,
  reader: number | undefined,
): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  const original = found?.isFile() ? readFileSync(path) : Buffer.alloc(0);
  if (found) rmSync(path, { recursive: true });
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await kind.put(path, { ...around, original });
  if (reader === undefined) return;
  chownSync(dirname(path), reader, reader);
  if (kind.needsRoot) return;
  const put = lstatSync(path, { throwIfNoEntry: false });
  if (put?.isDirectory()) give(path, reader);
  else if (put && !put.isSymbolicLink()) chownSync(path, reader, reader);
}

function give(folder: string, user: number): void {
  for (const name of [".", ...readdirSync(folder, { recursive: true, encoding: "utf8" })])
    chownSync(join(folder, name), user, user);
}

/** A small generator of numbers (mulberry32): the same for the same seed. */
export function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) % below;
  };
}

/** The cases that this machine can make. */
export function casesFor(target: Target, options: { readonly slow: boolean }): { target: Target; kind: Kind }[] {
  const isRoot = process.getuid?.() === 0;
  return kinds
    .filter((kind) => (isRoot || !kind.needsRoot) && (options.slow || !kind.isSlow))
    .map((kind) => ({ target, kind }));
}
