import type { ChatState, PermissionAsk } from "../host/host.ts";
import { isPlain, plain, plainLine } from "../terminal/index.ts";
import { interruptionLines } from "./interruption.ts";
import { cut, type Line, line, lineWidth, span, untab, wrap } from "./line.ts";
import { excerpt } from "./words.ts";

/** What a person may decide now. */
export interface Panel {
  /** What it is about: a selection holds as long as this is the same. */
  readonly about: string;
  readonly choices: readonly Choice[];
  /** What stands above the choices. */
  readonly lines: (columns: number, rowsMax: number, now: number) => Line[];
}

export interface Choice {
  /** Chooses it, with Enter behind it. */
  readonly key: string;
  readonly label: string;
  readonly act: Act;
}

export type Act =
  | { readonly do: "answer"; readonly call: string; readonly word: "allow" | "always" | "deny" }
  | { readonly do: "finish"; readonly processes?: "wait" | "stop" }
  | { readonly do: "leave" }
  | { readonly do: "show" }
  | { readonly do: "sendQueue" }
  | { readonly do: "withdrawQueue" }
  | { readonly do: "later"; readonly about: string };

/** The most urgent one; null if nothing waits for a word. `later`: what the person has put off. */
export function panelOf(state: ChatState, later: ReadonlySet<string>): Panel | null {
  const ask = state.asks[0];
  if (ask !== undefined) return askPanel(ask, state.asks.length - 1);
  if (state.status === "running" || state.isCompacting) return null;
  if (state.interruption !== null) return interruptionPanel(state);
  if (state.status === "interrupted") return brokenPanel(state);
  const about = `queue:${state.queue.map(({ id }) => id).join()}`;
  return state.queue.length > 0 && state.status === "idle" && !later.has(about) ? queuePanel(state, about) : null;
}

function askPanel(ask: PermissionAsk, others: number): Panel {
  return {
    about: `ask:${ask.call}`,
    choices: [
      { key: "y", label: "allow once", act: { do: "answer", call: ask.call, word: "allow" } },
      {
        key: "a",
        label: `always in this session (${plainLine(ask.rule)})`,
        act: { do: "answer", call: ask.call, word: "always" },
      },
      { key: "n", label: "deny", act: { do: "answer", call: ask.call, word: "deny" } },
    ],
    lines: (columns, rowsMax) => {
      const more = others > 0 ? ` (${others} more behind it)` : "";
      const head: Line = [
        span("? ", { colour: "yellow", bold: true }),
        span(`May it run ${plainLine(ask.name)}?${more}`, { bold: true }),
      ];
      const what = wrap(line(plainLine(ask.summary)), columns, { first: [span("  ")], rest: [span("  ")] });
      const unseen = isHarmless(ask.input)
        ? []
        : [cut(line("  ! it holds control characters, which are not shown", HIDDEN), columns)];
      const rows = [cut(head, columns), ...unseen, ...what, ...inputLines(ask, columns, rowsMax)];
      if (rows.length <= rowsMax) return rows;
      if (rowsMax < 3) return [rows[0]!, cut(line(`  ${plainLine(ask.summary)}`), columns)];
      // Nobody is to allow what is hidden, without being told that it is.
      return [...rows.slice(0, rowsMax - 1), cut(line("  … there is more: make the window larger", HIDDEN), columns)];
    },
  };
}

/** Else what is run would not be what is seen. */
function isHarmless(input: unknown): boolean {
  if (typeof input !== "object" || input === null) return true;
  const texts = Object.values(input).filter((value) => typeof value === "string");
  return texts.every((text) => isPlain(text.replaceAll("\r\n", "\n")));
}

/** What an input holds beside its summary: what would be written, what would be replaced by what. */
function inputLines({ input, summary }: PermissionAsk, columns: number, rowsMax: number): Line[] {
  if (typeof input !== "object" || input === null) return [];
  const entries = Object.entries(input);
  // A large window has room for more of it; what stands above takes some.
  const room = Math.max(BLOCK_ROWS_MIN, Math.floor((rowsMax - 4) / entries.length) - 1);
  return entries.flatMap(([name, value]) => {
    if (value === undefined || value === null || (typeof value === "string" && summary.includes(value))) return [];
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    const title = span(`  ${plainLine(name)}: `, { dim: true });
    const short: Line = text.length > CHARS_MAX ? [title] : [title, span(shownText(text))];
    if (text.length <= CHARS_MAX && !shownText(text).includes("\n") && lineWidth(short) <= columns) return [short];
    return [[title], ...blockOf(text, columns, room)];
  });
}

const HIDDEN = { colour: "yellow" } as const;
/** Beyond this, only the beginning and the end are laid out. */
const CHARS_MAX = 8000;
const BLOCK_ROWS_MIN = 8;

/** All of a text, or its beginning and its end: what a long command comes to may stand at the end of it. */
function blockOf(text: string, columns: number, rowsMax: number): Line[] {
  const edge = [span("  │ ", { colour: "grey" })];
  const laidOut = (part: string): Line[] =>
    shownText(part)
      .split("\n")
      .flatMap((one) => wrap(line(one), columns, { first: edge, rest: edge, hard: true }));
  const isLong = text.length > CHARS_MAX;
  const rows = laidOut(isLong ? text.slice(0, CHARS_MAX / 2) : text);
  if (!isLong && rows.length <= rowsMax) return rows;
  const end = isLong ? laidOut(text.slice(-CHARS_MAX / 2)) : rows;
  const hidden = line(`  │ … of ${text.length} characters these are the first and the last …`, HIDDEN);
  const first = Math.floor(rowsMax / 2);
  return [...rows.slice(0, first), cut(hidden, columns), ...end.slice(first + 1 - rowsMax)];
}

function shownText(text: string): string {
  return untab(plain(text.toWellFormed())).trimEnd();
}

function interruptionPanel(state: ChatState): Panel {
  const found = state.interruption!;
  const running = found.calls.find((call) => call.process?.running);
  const pid = running?.process?.pid;
  const goOn = found.how.kind === "suspended" ? "go on with it: you are asked again" : "finish it";
  const finish: Choice[] =
    pid === undefined
      ? [{ key: "f", label: goOn, act: { do: "finish" } }]
      : [
          { key: "f", label: `finish it: wait for process ${pid}`, act: { do: "finish", processes: "wait" } },
          { key: "k", label: `finish it: stop process ${pid} first`, act: { do: "finish", processes: "stop" } },
        ];
  return {
    about: `interruption:${found.turn}:${found.resumes}`,
    choices: [
      ...finish,
      { key: "l", label: "leave it: the model is told with your next prompt", act: { do: "leave" } },
      { key: "s", label: "show it", act: { do: "show" } },
    ],
    lines: (columns, rowsMax, now) => [
      ...interruptionLines(found, columns, rowsMax - state.queue.length, now, state.failure !== null),
      ...waiting(state.queue, columns),
    ],
  };
}

/** Nothing can be recorded, so nothing is known of the turn but that it did not end. What happened stands above. */
function brokenPanel(state: ChatState): Panel {
  return {
    about: `broken:${state.failure?.message ?? ""}`,
    choices: [
      { key: "f", label: "finish it, once that is put right", act: { do: "finish" } },
      { key: "l", label: "leave it: the model is told with your next prompt", act: { do: "leave" } },
    ],
    lines: (columns) =>
      wrap(
        line("The turn was broken off. What was recorded before is safe.", { bold: true, colour: "yellow" }),
        columns,
      ),
  };
}

function queuePanel(state: ChatState, about: string): Panel {
  const one = state.queue.length === 1;
  return {
    about,
    choices: [
      { key: "s", label: one ? "send it" : "send them, one after the other", act: { do: "sendQueue" } },
      { key: "w", label: one ? "take it back into the editor" : "withdraw them", act: { do: "withdrawQueue" } },
      { key: "l", label: "later", act: { do: "later", about } },
    ],
    lines: (columns) => [
      line(one ? "A prompt waits for its turn:" : `${state.queue.length} prompts wait for their turn:`, {
        bold: true,
        colour: "yellow",
      }),
      ...waiting(state.queue, columns),
    ],
  };
}

function waiting(queue: ChatState["queue"], columns: number): Line[] {
  return queue.slice(0, 4).map(({ text }) => line(`  queued: ${excerpt(text, columns - 10)}`, { dim: true }));
}

/** The choices, one a row. */
export function choiceLines(panel: Panel, selected: number, columns: number): Line[] {
  const rows = panel.choices.map(({ key, label }, i): Line => {
    const on = i === selected;
    return [
      span(on ? "▸ " : "  ", { colour: "cyan", bold: true }),
      span(key, { colour: "cyan", bold: true }),
      span(`  ${label}`, on ? { bold: true } : {}),
    ];
  });
  const how = selected === -1 ? "empty the line below to choose" : "letter or arrows, then Enter";
  return [...rows, line(`  ${how}`, { dim: true })].map((row) => cut(row, columns));
}

/** The choices on one row, where there is no room for more: the chosen one, and the letters of the others. */
export function choiceLine(panel: Panel, selected: number, columns: number): Line {
  const chosen = panel.choices[selected];
  if (!chosen) return cut(line("  empty the line below to choose", { dim: true }), columns);
  const others = panel.choices.flatMap(({ key }) => (key === chosen.key ? [] : [key])).join(", ");
  const what = span(`▸ ${chosen.key}  ${chosen.label}`, { colour: "cyan", bold: true });
  return cut([what, span(`  or ${others}`, { dim: true })], columns);
}
