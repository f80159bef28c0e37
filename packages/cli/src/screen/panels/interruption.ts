import type { InterruptedCall, InterruptionShown } from "../../host/host.ts";
import { ago, plain, plainLine } from "../../terminal/index.ts";
import { callSummary, excerpt } from "../lines/labels.ts";
import { BLANK, cut, type Line, line, type Span, span, untab, wrap } from "../lines/line.ts";
import { markdownLines } from "../lines/markdown.ts";

const WARNING = { colour: "yellow" } as const;
const FAINT = { dim: true } as const;

/** How a turn was cut off, as a sentence. */
export function howWords(how: InterruptionShown["how"]): string {
  switch (how.kind) {
    case "killed":
      return "The last process was killed in mid-turn";
    case "signal":
      return how.signal === "SIGHUP"
        ? "The terminal was closed in mid-turn (SIGHUP)"
        : `The last process was stopped by ${plainLine(how.signal)} in mid-turn`;
    case "aborted":
      return how.by === "close"
        ? "The last turn was stopped when the chat was closed"
        : `The last turn was stopped by ${plainLine(how.by)}${how.reason ? `: ${plainLine(how.reason)}` : ""}`;
    case "failed":
      return `The last turn failed: ${plainLine(how.error)}`;
    case "suspended":
      return how.reason === "permission"
        ? "The last turn is waiting for approval"
        : `The last turn is waiting: ${plainLine(how.reason)}`;
  }
}

/** How far a call got, for people. */
export function describeCallState(call: InterruptedCall): string {
  const { process } = call;
  if (process?.running) return `still running as process ${process.pid}`;
  if (process?.exitCode !== undefined) return `has since exited with status ${process.exitCode}`;
  switch (call.state) {
    case "never-started":
      return "never started: safe to run";
    case "outcome-unknown":
      return "started, outcome unknown";
    case "unrecorded":
      return "may have run: its start was not recorded";
    case "awaiting":
      return "waiting for approval, has not run";
    case "provider":
      return "run by the provider";
  }
}

/** In brief: the prompt, the text so far and the state of each call. `told`: the failure is already shown above. */
export function summarizeInterruption(
  found: InterruptionShown,
  columns: number,
  rowsMax: number,
  now: number,
  told = false,
): Line[] {
  const rows: Line[] = wrap(
    line(`${told ? "The turn failed" : howWords(found.how)}, ${ago(found.at, now)}.`, { ...WARNING, bold: true }),
    columns,
  );
  return [...rows, ...interruptionFacts(found, columns, rowsMax - rows.length)];
}

/** The prompt, the text so far and the state of each call. */
export function interruptionFacts(found: InterruptionShown, columns: number, rowsMax: number): Line[] {
  const rows: Line[] = [fact("you asked", excerpt(found.prompt, columns), columns)];
  if (found.text.trim() !== "") rows.push(fact("it said", lastWords(found.text, columns - 16), columns));
  else if (found.answered) rows.push(fact("status", "answered, nothing left open", columns));
  const calls = found.calls.map((call) => callRow(call, columns));
  const room = Math.max(1, rowsMax - rows.length);
  const shown = calls.length > room ? calls.slice(0, room - 1) : calls;
  rows.push(...shown);
  if (shown.length < calls.length) rows.push(more(calls.length - shown.length, shown.length > 0));
  return rows;
}

/** The full details, for the scrollback. */
export function interruptionDetails(found: InterruptionShown, columns: number): Line[] {
  const rows: Line[] = [BLANK, line(`── turn ${found.turn}, cut off at ${found.at}`, FAINT)];
  rows.push(...wrap(line(`${howWords(found.how)}.`, WARNING), columns));
  // Each approval also counts as a resume, so a high number is no cause for alarm.
  if (found.resumes > 0) rows.push(line(`It had been resumed ${found.resumes} times.`, FAINT));
  rows.push(BLANK, line("Prompt:", FAINT));
  rows.push(
    ...untab(plain(found.prompt))
      .split("\n")
      .flatMap((one) => wrap(line(one), columns)),
  );
  if (found.text.trim() !== "") {
    rows.push(BLANK, line("Streamed so far:", FAINT), ...markdownLines(found.text, columns));
    rows.push(line("… cut off here", { italic: true, colour: "yellow" }));
  }
  for (const call of found.calls) {
    rows.push(BLANK, callRow(call, columns));
    const input = JSON.stringify(call.input, null, 2) ?? "";
    rows.push(
      ...untab(plain(input))
        .split("\n")
        .slice(0, 40)
        .flatMap((one) => wrap(line(one, FAINT), columns, { first: [span("  ")], rest: [span("  ")], hard: true })),
    );
  }
  return rows;
}

function callRow(call: InterruptedCall, columns: number): Line {
  const words = `  ${describeCallState(call)}`;
  const colour = call.state === "never-started" || call.state === "awaiting" ? "grey" : "yellow";
  const head: Span[] = [span("  • ", FAINT), span(plainLine(call.name), { bold: true }), span(` ${callSummary(call)}`)];
  return cut([...cut(head, Math.max(12, columns - words.length)), span(words, { colour })], columns);
}

function fact(name: string, words: string, columns: number): Line {
  return cut([span(`  ${name}: `, FAINT), span(words)], columns);
}

/** The end of the text shows where it stopped. */
function lastWords(text: string, columns: number): string {
  const all = plainLine(text.slice(-columns * 4));
  return all.length <= columns ? all : `…${all.slice(-Math.max(1, columns - 1))}`;
}

function more(count: number, areSomeShown: boolean): Line {
  return line(areSomeShown ? `  … and ${count} more calls` : `  … ${count} calls`, FAINT);
}
