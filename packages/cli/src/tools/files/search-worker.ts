import type { Stats } from "node:fs";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { OwnFiles, type OwnStore } from "../paths/own-store.ts";
import { RESULT_CHARS_MAX } from "../results/result-text.ts";
import { readWholeSync } from "./regular-file.ts";
import { notText } from "./text-file.ts";

export interface SearchTask {
  readonly pattern: string;
  readonly files: readonly string[];
  /** The name of each file in the result. */
  readonly names: readonly string[];
  readonly own: OwnStore | null;
}

/** What was found since the last report. The first report comes before the search. */
export interface SearchReport {
  readonly lines: readonly string[];
  readonly searched: number;
  readonly skipped: number;
  readonly isCut: boolean;
  readonly isDone: boolean;
}

const LINES_MAX = 500;
const LINE_CHARS_MAX = 400;
const FILE_BYTES_MAX = 8 * 1024 * 1024;
/** Only the start of a longer line is searched: it is data, not text, and slow to match. */
const SEARCHED_CHARS_MAX = 20_000;

function run({ pattern, files, names, own }: SearchTask, tell: (report: SearchReport) => void): void {
  const expression = new RegExp(pattern, "u");
  const ownFiles = own && new OwnFiles(own);
  const isOwn = (found: Stats): boolean => ownFiles?.has(found) ?? false;
  let found = 0;
  let chars = 0;
  let skipped = 0;
  tell({ lines: [], searched: 0, skipped, isCut: false, isDone: false });
  for (const [at, file] of files.entries()) {
    const text = textOf(file, isOwn);
    if (text === null) skipped += 1;
    const lines: string[] = [];
    let number = 0;
    let isCut = false;
    for (const line of text?.split("\n") ?? []) {
      number += 1;
      if (!expression.test(line.slice(0, SEARCHED_CHARS_MAX))) continue;
      const shown = `${names[at]}:${number}: ${line.slice(0, LINE_CHARS_MAX).replace(/\r$/u, "").toWellFormed()}`;
      chars += shown.length + 1;
      isCut = found >= LINES_MAX || chars > RESULT_CHARS_MAX;
      if (isCut) break;
      found += 1;
      lines.push(shown);
    }
    if (lines.length > 0 || isCut || at % 64 === 63) tell({ lines, searched: at + 1, skipped, isCut, isDone: isCut });
    if (isCut) return;
  }
  tell({ lines: [], searched: files.length, skipped, isCut: false, isDone: true });
}

/** Null if the file is not text, too large, gone, or another name of a store file. */
function textOf(file: string, isOwn: (found: Stats) => boolean): string | null {
  try {
    const bytes = readWholeSync(file, FILE_BYTES_MAX, isOwn);
    if (bytes === null || notText(bytes.subarray(0, 8192))) return null;
    return bytes.toString("utf8").replaceAll("\0", "\uFFFD");
  } catch (error) {
    // Counted as skipped.
    if (error instanceof Error) return null;
    throw error;
  }
}

const port = parentPort;
if (!isMainThread && port) run(workerData as SearchTask, (report) => port.postMessage(report));
