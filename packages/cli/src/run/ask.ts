import { Buffer } from "node:buffer";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as passed } from "node:timers/promises";
import { approvalLines, lineWords } from "../host/approval/approval-request.ts";
import type { Chat, PermissionAsk } from "../host/host.ts";
import { visibleLine } from "../terminal/visible.ts";

let last: Promise<void> = Promise.resolve();

/**
 * Asks the person at the terminal for approval, one request at a time. Anything but a clear yes means no; Ctrl+C
 * decides nothing, and the call keeps waiting.
 */
export function askPerson(chat: Chat, ask: PermissionAsk): Promise<void> {
  const isOpen = (): boolean => chat.state.asks.some(({ call }) => call === ask.call);
  const asked = last.then(async () => {
    if (!isOpen()) return;
    const whole = requestText(ask);
    const shown = excerpt(whole);
    const folder = shown.hidden === null ? null : mkdtempSync(join(tmpdir(), "holdfast-request-"));
    try {
      process.stderr.write(`${shown.text}\n`);
      if (folder !== null) {
        const file = join(folder, "request.txt");
        writeFileSync(file, whole, { mode: 0o600, flag: "wx" });
        process.stderr.write(`  … ${shown.hidden} not shown. Full request: ${file}\n`);
      }
      const word = await readLine(`Allow it? [y]es, [a]lways in this session (${ask.always}), [N]o: `);
      if (word === null || !isOpen()) return;
      await chat.answer(ask.call, /^y(?:es)?$/.test(word) ? "allow" : /^a(?:lways)?$/.test(word) ? "always" : "deny");
    } finally {
      if (folder !== null) rmSync(folder, { recursive: true, force: true });
    }
  });
  // The caller handles a failed answer; the next question is still asked.
  last = asked.catch(() => {});
  return asked;
}

/** The full request, as text. */
export function requestText(ask: PermissionAsk): string {
  const lines = approvalLines(ask).map(lineWords);
  return [`The agent wants to use ${visibleLine(ask.name)}:`, ...lines].join("\n");
}

const LINES_MAX = 400;
const CHARS_MAX = 64 * 1024;

/** As much text as fits a terminal reasonably, and exactly how much is hidden. */
export function excerpt(text: string): { readonly text: string; readonly hidden: string | null } {
  const lines = text.split("\n", LINES_MAX);
  const cut = lines.join("\n").slice(0, CHARS_MAX);
  // Do not cut a character in half.
  const shown = cut.isWellFormed() ? cut : cut.slice(0, -1);
  if (shown.length === text.length) return { text, hidden: null };
  const rest = text.slice(shown.length);
  const bytes = Buffer.byteLength(rest);
  const count = rest.replace(/^\n/u, "").split("\n").length;
  return { text: shown, hidden: `${count} ${count === 1 ? "line" : "lines"} (${bytes} bytes)` };
}

/** Keys pressed sooner than this were typed before the person can have seen the question. */
const TYPED_AHEAD_MS = 250;

/** The line typed; empty at the end of input; null after Ctrl+C, which then has its usual effect. */
async function readLine(question: string): Promise<string | null> {
  if (!(await discardTypedAhead())) return null;
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    const end = (word: string | null): void => {
      resolve(word);
      reader.close();
    };
    reader.question(question, (line) => end(line.trim().toLowerCase()));
    reader.once("close", () => resolve(""));
    // While readline reads, Ctrl+C sends no signal.
    reader.once("SIGINT", () => {
      end(null);
      interrupt();
    });
  });
}

/** Drops what was typed before the question. False after Ctrl+C. */
async function discardTypedAhead(): Promise<boolean> {
  const { stdin } = process;
  let isInterrupted = false;
  const drop = (bytes: Buffer | string): void => {
    // In raw mode, Ctrl+C is an ordinary character.
    if (bytes.includes("\x03")) isInterrupted = true;
  };
  stdin.setRawMode?.(true);
  stdin.on("data", drop);
  try {
    await passed(TYPED_AHEAD_MS);
  } finally {
    stdin.off("data", drop);
    stdin.setRawMode?.(false);
    stdin.pause();
  }
  if (isInterrupted) interrupt();
  return !isInterrupted;
}

/** Emits the event directly: a real signal would not keep the process alive until it is handled. */
function interrupt(): void {
  if (!process.emit("SIGINT", "SIGINT")) process.kill(process.pid, "SIGINT");
}
