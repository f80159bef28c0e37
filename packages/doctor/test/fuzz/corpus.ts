import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { AGENTS, type Agent, Door } from "../../src/index.ts";
import { listRecordings, placeRecording } from "../real/recording.ts";

/** What the fuzzer starts from: the files of every recorded session. */

export interface BaseFile {
  readonly agent: Agent;
  /** The name of the file and of its folder: some readers look at them. */
  readonly name: string;
  readonly folder: string;
  /** Expanded, if it was compressed. */
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
  /** Null if it is no file of lines. */
  readonly lines: readonly Buffer[] | null;
}

const ZSTD_MAGIC = 0xfd2fb528;
const LF = 10;

export function readCorpus(): readonly BaseFile[] {
  const files: BaseFile[] = [];
  const scratch = mkdtempSync(join(tmpdir(), "holdfast-fuzz-corpus-"));
  try {
    for (const [index, recording] of listRecordings().entries()) {
      const { home } = placeRecording(recording, join(scratch, String(index)));
      using door = new Door();
      for (const agent of AGENTS) {
        const paths = new Set<string>();
        for (const root of agent.homes({}, home))
          for (const { path, parts } of agent.find(root, door)) for (const each of [path, ...parts]) paths.add(each);
        for (const path of paths) files.push(baseFile(agent, path));
      }
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return files;
}

function baseFile(agent: Agent, path: string): BaseFile {
  const raw = readFileSync(path);
  const isCompressed = raw.length > 4 && raw.readUInt32LE() === ZSTD_MAGIC;
  const bytes = isCompressed ? zstdDecompressSync(raw) : raw;
  const lines = linesIn(bytes);
  const isLines = lines.every((line) => line.length === 0 || isObject(line));
  const place = { name: basename(path), folder: basename(dirname(path)) };
  return { agent, ...place, bytes, isCompressed, lines: isLines ? lines.filter((line) => line.length > 0) : null };
}

/** What stands between the line feeds. */
export function linesIn(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let at = 0; at <= bytes.length; ) {
    const end = bytes.indexOf(LF, at);
    lines.push(bytes.subarray(at, end < 0 ? bytes.length : end));
    if (end < 0) break;
    at = end + 1;
  }
  return lines;
}

function isObject(line: Buffer): boolean {
  try {
    return typeof JSON.parse(line.toString("utf8")) === "object";
  } catch {
    return false;
  }
}
