import { type CallAccount, changesWords } from "holdfast";
import type { InterruptionShown } from "../../host/host.ts";
import { ago, plain, plainLine } from "../../terminal/index.ts";
import { outputTail } from "../lines/item-lines.ts";
import { callSummary, excerpt } from "../lines/labels.ts";
import { BLANK, cut, type Line, line, type Span, span, untab, wrap } from "../lines/line.ts";
import { markdownLines } from "../lines/markdown.ts";

const WARNING = { colour: "yellow" } as const;
const FAINT = { dim: true } as const;
const ADDED = { colour: "green" } as const;
const REMOVED = { colour: "red" } as const;
const PRINTED_ROWS = 3;
const DIFF_MARKS = { same: " ", removed: "-", added: "+", gap: " " } as const;

/** In brief: the prompt, the text so far and the state of each call. `told`: the failure is already shown above. */
export function summarizeInterruption(
  found: InterruptionShown,
  columns: number,
  rowsMax: number,
  now: number,
  told = false,
): Line[] {
  const rows: Line[] = wrap(
    line(told ? `The turn failed, ${ago(found.at, now)}.` : `The last turn: ${found.words} (${ago(found.at, now)}).`, {
      ...WARNING,
      bold: true,
    }),
    columns,
  );
  return [...rows, ...interruptionFacts(found, columns, rowsMax - rows.length)];
}

/** The prompt, the text so far and the state of each call. */
export function interruptionFacts(found: InterruptionShown, columns: number, rowsMax: number): Line[] {
  const rows: Line[] = [fact("you asked", excerpt(found.prompt, columns), columns)];
  if (found.text.trim() !== "") rows.push(fact("it said", lastWords(found.text, columns - 16), columns));
  else if (found.answered) rows.push(fact("status", "answered, nothing left open", columns));
  const calls = found.calls.map((call) => callRows(call, columns));
  const room = Math.max(1, rowsMax - rows.length);
  const shown = calls.flat().length > room ? firstThatFit(calls, room - 1) : calls;
  rows.push(...shown.flat());
  if (shown.length < calls.length) rows.push(more(calls.length - shown.length, shown.length > 0));
  return rows;
}

function firstThatFit(calls: readonly Line[][], room: number): readonly Line[][] {
  let left = room;
  const end = calls.findIndex(({ length }) => {
    left -= length;
    return left < 0;
  });
  return end < 0 ? calls : calls.slice(0, end);
}

/** The full details, for the scrollback. */
export function interruptionDetails(found: InterruptionShown, columns: number): Line[] {
  const rows: Line[] = [BLANK, line(`── turn ${found.turn}, cut off at ${found.at}`, FAINT)];
  rows.push(...wrap(line(`The turn: ${found.words}.`, WARNING), columns));
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
    rows.push(BLANK, ...callRows(call, columns));
    const input = JSON.stringify(call.input, null, 2) ?? "";
    rows.push(
      ...untab(plain(input))
        .split("\n")
        .slice(0, 40)
        .flatMap((one) => wrap(line(one, FAINT), columns, { first: [span("  ")], rest: [span("  ")], hard: true })),
    );
    for (const { path, diff = [] } of call.changes?.files ?? []) {
      if (diff.length === 0) continue;
      rows.push(line(`  ${plainLine(path)}, since it began:`, FAINT));
      for (const { kind, text } of diff) {
        const one = `${DIFF_MARKS[kind]} ${untab(plainLine(text))}`;
        const style = kind === "added" ? ADDED : kind === "removed" ? REMOVED : FAINT;
        rows.push(...wrap(line(one, style), columns, { first: [span("    ")], rest: [span("      ")], hard: true }));
      }
    }
  }
  return rows;
}

/** What it is and how far it got, on one row; below that, what its process has printed and what has changed since. */
function callRows(call: CallAccount, columns: number): Line[] {
  const colour = call.effect === "possible" ? "yellow" : "grey";
  const since = call.changes ? changesWords(call.changes) : null;
  const words = `  ${since === null ? call.words : call.words.replace(`; ${since}`, "")}`;
  const head: Span[] = [span("  • ", FAINT), span(plainLine(call.name), { bold: true }), span(` ${callSummary(call)}`)];
  const row = cut([...cut(head, Math.max(12, columns - words.length)), span(words, { colour })], columns);
  const printed = outputTail(call.process?.printed ?? "", columns, PRINTED_ROWS);
  if (since === null) return [row, ...printed];
  const indent = [span("    ")];
  return [row, ...printed, ...wrap(line(since, { colour }), columns, { first: indent, rest: indent })];
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
