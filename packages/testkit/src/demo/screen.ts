import { styleText } from "node:util";
import type { Interruption, OpenCall } from "holdfast";
import { count, number } from "../kill/verdict.ts";
import type { DemoEvent, EntryWord } from "./events.ts";
import type { DemoReceipt } from "./ledger.ts";
import { blocksOf, type Message, PROMPT } from "./model.ts";

type Style = Parameters<typeof styleText>[0];
const WIDTH = 79;
const INDENT = " ".repeat(14);

/** Colours where a person looks at a terminal and has not asked for none (NO_COLOR). */
function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

function print(line = ""): void {
  process.stdout.write(`${line}\n`);
}

/** A label and its words, wrapped. */
function row(style: Style, label: string, words: string): void {
  const lines = [""];
  for (const word of words.split(" ")) {
    const line = lines.at(-1)!;
    if (line !== "" && INDENT.length + line.length + 1 + word.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  for (const [n, line] of lines.entries())
    print(n === 0 ? `    ${paint(style, label.padEnd(10))}${line}` : `${INDENT}${line}`);
}

export function showStart(store: string): void {
  print(paint("bold", "Holdfast: an agent is killed in the middle of a turn, and resumes"));
  print("Three processes work on one turn; the first two are killed with SIGKILL. The");
  print("model is scripted and needs no network; processes, kills and disk are real.");
  print(paint("dim", `store ${store}`));
}

export interface LifeShown {
  readonly number: number;
  readonly pid: number;
  /** What the model had streamed when the process before this one was killed. */
  readonly streamed: string;
}

export function showEvent(event: DemoEvent, life: LifeShown): void {
  switch (event.e) {
    case "opened":
      print();
      if (event.found) showFound(event.found, event, life);
      else {
        print(paint("bold", `${life.number}  process ${life.pid} begins`));
        row("cyan", "user", PROMPT);
      }
      return;
    case "request":
      showTold(event.messages);
      return;
    case "answer":
      row("cyan", "model", event.text);
      if (event.calls.length > 0) row("cyan", "calls", event.calls.join(", "));
      return;
    case "tool":
      if (event.came === "started") row("cyan", "tool", `${event.name} started`);
      else row("cyan", "tool", `${event.name} ended: ${event.value}`);
      return;
    case "failed":
      row("red", "WRONG", event.message.split("\n", 1)[0]!);
  }
}

const STATES: { readonly [S in OpenCall["state"]]: { style: Style; label: string; words: string } } = {
  "outcome-unknown": { style: "yellow", label: "in doubt", words: "had started, and nobody knows what came of it" },
  unrecorded: { style: "yellow", label: "in doubt", words: "may have run" },
  "never-started": { style: "green", label: "safe", words: "never started" },
  awaiting: { style: "green", label: "safe", words: "waits for a person" },
  provider: { style: "yellow", label: "in doubt", words: "is run by the provider" },
};

const ENTRIES: { readonly [W in EntryWord]: string } = {
  prompt: "prompt",
  answer: "answer",
  result: "tool result",
  note: "stand-in result",
};

function showFound(
  found: Interruption<Message>,
  { there, ms }: { readonly there: readonly EntryWord[]; readonly ms: number },
  { number: life, pid, streamed }: LifeShown,
): void {
  print(paint("bold", `${life}  process ${pid} resumes, ready after ${ms.toFixed(0)} ms`));
  const before = found.resumes === 0 ? "" : ", for the second time";
  row("magenta", "found", `turn ${found.turn} was cut off${before}: the process was ${found.how.kind}`);
  const words = [...Map.groupBy(there, (word) => word)].map(([word, { length }]) => count(length, ENTRIES[word]));
  row("green", "survived", words.join(", "));
  for (const call of found.calls) {
    const { style, label, words } = STATES[call.state];
    row(style, label, `${call.name} ${words}`);
  }
  if (!found.draft) return;
  const text = found.draft.text.trimEnd();
  row("green", "survived", `what had been streamed: "${text}"`);
  const rest = streamed.slice(found.draft.text.length).trim();
  if (rest !== "") row("yellow", "gone", `"${rest}": streamed less than 200 ms before the kill`);
}

/** What the model is told of the calls that were cut off. */
function showTold(messages: readonly Message[]): void {
  const told = blocksOf(messages.at(-1)).filter(({ is_error }) => is_error);
  for (const words of new Set(told.map(({ content = "" }) => content))) row("magenta", "told", `the model: "${words}"`);
}

export function showDeath(where: string, streamed: string, killed: boolean): void {
  if (streamed !== "") row("cyan", "model", `${streamed.trimEnd()} …`);
  if (killed) row("red", "killed", `SIGKILL ${where}`);
  else row(where === "exit code 0" ? "green" : "red", "end", `the process ended by itself (${where})`);
}

export function showReceipt(receipt: DemoReceipt): void {
  const { kept, lost, requests, refused, sameRequest, world, balances } = receipt;
  const line = (isRight: boolean, words: string): void =>
    print(`  ${isRight ? paint("green", "yes") : paint("red", "NO ")}  ${words}`);
  const twice = world.filter((what, at) => world.indexOf(what) !== at);
  print();
  print(paint("bold", "Receipt"));
  line(lost === 0, `all that was acknowledged is there: ${number(kept)} messages, starts and results`);
  line(
    refused.length === 0,
    `${count(requests, "request")}, each one valid by the provider's rules (strict validator)`,
  );
  line(sameRequest, "after the second kill, the model was asked the very same question again");
  line(twice.length === 0, `each effect once: ${world.join(", ")}`);
  line(receipt.completed, "the turn was completed");
  for (const words of refused) row("red", "refused", words);
  if (twice.length > 0) row("red", "twice", twice.join(", "));
  print();
  if (balances) print(paint("green", "The receipt balances: two kills, one turn, and nothing acknowledged is lost."));
  else print(paint("red", "THE RECEIPT DOES NOT BALANCE: this is a bug. Please report it with this screen."));
  print(paint("dim", "The same in your agent: examples/hooks.ts, docs/guides/adopt-in-an-hour.md"));
}
