import { styleText } from "node:util";
import { count, number } from "../kill/verdict.ts";
import type { DemoReceipt } from "./receipt.ts";

type Style = Parameters<typeof styleText>[0];

/** Colours where a person looks at a terminal and has not asked for none (NO_COLOR). */
function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

function print(line = ""): void {
  process.stdout.write(`${line}\n`);
}

export function showStart(kills: number, seed: number, place: string): void {
  print(paint("bold", "Holdfast: a writer that is killed while it writes"));
  print("A child process appends a conversation to a journal. On a pipe it says what");
  print("it is about to append, and then what it was told is safe. It is killed with");
  print(`SIGKILL ${count(kills, "time")}; each time the journal is opened again, and checked.`);
  print(paint("dim", `seed ${seed} · ${place}`));
  print();
}

export interface LifeShown {
  readonly number: number;
  readonly pid: number;
  readonly attempts: number;
  readonly acknowledged: number;
  /** Where it was when it was killed. */
  readonly where: string;
}

export function showKill({ number: life, pid, attempts, acknowledged, where }: LifeShown): void {
  const made = `writer ${pid}: ${count(attempts, "append")}, ${number(acknowledged)} acknowledged`;
  print(`${paint("bold", String(life).padStart(3))}  ${made}`);
  print(`     ${paint("red", "killed")}    SIGKILL ${where}`);
}

export function showReopening(ms: number, records: number, cutBytes: number): void {
  const torn = cutBytes > 0 ? `; ${count(cutBytes, "torn byte")} cut, kept in quarantine` : "; nothing torn";
  print(`     ${paint("green", "reopened")}  in ${ms.toFixed(1)} ms, ${count(records, "record")}${torn}`);
}

export function showChecked(acknowledged: number): void {
  print(
    `     ${paint("green", "checked")}   ${count(acknowledged, "acknowledged append")} so far, all there, in order`,
  );
}

export function showFaults(faults: readonly string[]): void {
  for (const fault of faults) print(`     ${paint("red", "WRONG")}     ${fault}`);
}

export function showEnd(pid: number, appends: number): void {
  print(`${paint("bold", "end".padStart(3))}  writer ${pid}: ${count(appends, "append")}, closed in order`);
}

export function showReceipt(receipt: DemoReceipt): void {
  const { attempted, acknowledged, recovered, kept, lost, torn, cutBytes, quarantinedBytes, balances } = receipt;
  const row = (name: string, value: number, words: string): void =>
    print(`  ${name.padEnd(13)}${number(value).padStart(9)}  ${paint("dim", words)}`);
  print();
  print(paint("bold", "Receipt"));
  row("attempted", attempted, "said on the pipe before each append");
  row("acknowledged", acknowledged, "said on the pipe after its promise resolved");
  row("recovered", recovered, `whole and in order${kept > 0 ? `; ${kept} of them unacknowledged` : ""}`);
  row("torn", torn, "appends that a kill cut short");
  row("bytes cut", cutBytes, `${number(quarantinedBytes)} of them in quarantine`);
  row("lost", lost, "acknowledged, and not there");
  print();
  if (balances) print(paint("green", "The receipt balances: everything that was acknowledged is there."));
  else print(paint("red", "THE RECEIPT DOES NOT BALANCE: this store does not keep what it promises."));
}
