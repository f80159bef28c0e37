import { Buffer } from "node:buffer";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as passed } from "node:timers/promises";
import { approvalLines, lineWords, questionWords, VIEW } from "../host/approval/approval-request.ts";
import type { ApprovalAnswer, Chat, PermissionAsk } from "../host/host.ts";

let last: Promise<void> = Promise.resolve();

/**
 * Asks the person at the terminal for approval, one request at a time, with the same text and keys as the chat. Enter
 * means no; a word that is not among the answers asks again. Ctrl+C and Ctrl+D decide nothing: the call keeps waiting.
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
      const given = await readAnswer(ask, whole, isOpen);
      if (given === "nothing") await chat.stop();
      else if (given !== null && isOpen()) await chat.answer(ask.call, given.answer, given.reason);
    } finally {
      if (folder !== null) rmSync(folder, { recursive: true, force: true });
    }
  });
  // The caller handles a failed answer; the next question is still asked.
  last = asked.catch(() => {});
  return asked;
}

interface GivenAnswer {
  readonly answer: ApprovalAnswer;
  readonly reason?: string;
}

/** Null if somebody else decided or Ctrl+C was pressed; "nothing" at the end of the input. */
async function readAnswer(
  ask: PermissionAsk,
  whole: string,
  isOpen: () => boolean,
): Promise<GivenAnswer | "nothing" | null> {
  const keys = [...ask.choices, VIEW].map(({ key }) => key);
  process.stderr.write(`${choiceText(ask)}\n`);
  for (;;) {
    const line = await readLine(`Answer (${keys.slice(0, -1).join(", ")} or ${keys.at(-1)}; Enter: n): `);
    if (line.kind !== "line" || !isOpen()) return line.kind === "end" ? "nothing" : null;
    const word = line.text.toLowerCase();
    const choice = ask.choices.find((one) => (word === "" ? one.isDefault : one.key === word || one.word === word));
    if (word === VIEW.key || word === VIEW.word) process.stderr.write(`${whole}\n${choiceText(ask)}\n`);
    else if (choice === undefined) process.stderr.write("Not an answer. The call is still waiting.\n");
    else if (!choice.asksWhy) return { answer: choice.answer };
    else {
      const why = await readLine("What should the agent know or do instead? (Enter goes back): ");
      if (why.kind !== "line" || !isOpen()) return why.kind === "end" ? "nothing" : null;
      if (why.text !== "") return { answer: choice.answer, reason: why.text };
    }
  }
}

/** The full request, as text. */
export function requestText(ask: PermissionAsk): string {
  const lines = approvalLines(ask).map(lineWords);
  return [questionWords(ask), ...lines].join("\n");
}

/** The answers, as the chat lists them. */
function choiceText({ choices }: PermissionAsk): string {
  return [...choices, VIEW].map(({ key, label }) => `  ${key}  ${label}`).join("\n");
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

type TypedLine = { readonly kind: "line"; readonly text: string } | { readonly kind: "end" | "interrupted" };

/** One line, without what was typed before the question. Ctrl+C then has its usual effect. */
async function readLine(question: string): Promise<TypedLine> {
  if (!(await discardTypedAhead())) return { kind: "interrupted" };
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    const end = (typed: TypedLine): void => {
      resolve(typed);
      reader.close();
    };
    reader.question(question, (line) => end({ kind: "line", text: line.trim() }));
    reader.once("close", () => resolve({ kind: "end" }));
    // While readline reads, Ctrl+C sends no signal.
    reader.once("SIGINT", () => {
      end({ kind: "interrupted" });
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
