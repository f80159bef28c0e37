import { questionWords, VIEW } from "../../host/approval/approval-request.ts";
import type { ApprovalAnswer, ChatState, InterruptionShown, PermissionAsk } from "../../host/host.ts";
import { plainLine } from "../../terminal/index.ts";
import { visibleLine } from "../../terminal/visible.ts";
import { restoreHint } from "../../transcript/account-lines.ts";
import { excerpt } from "../lines/labels.ts";
import { BLANK, cut, type Line, line, lineWidth, type Span, span, wrap } from "../lines/line.ts";
import { excerptRows } from "./approval-rows.ts";
import { summarizeInterruption } from "./interruption.ts";

/** A decision that the person can make now. */
export interface Panel {
  /** What the panel is about: the selection is kept as long as this stays the same. */
  readonly about: string;
  readonly choices: readonly Choice[];
  /** The choice that Enter takes if no other key was pressed. Default: the first. */
  readonly initial?: number;
  /** Allowing it runs something, so keys typed before it appeared do not count as an answer. */
  readonly isQuestion?: true;
  /** In a low window the choices give way to what the panel is about. */
  readonly hasShortChoices?: true;
  /** Shown in the empty editor. */
  readonly placeholder?: string;
  /** The lines above the choices. */
  readonly lines: (columns: number, rowsMax: number, now: number) => Line[];
}

export interface Choice {
  /** Chooses it, followed by Enter. */
  readonly key: string;
  /** The same as a full word. */
  readonly word?: string;
  readonly label: string;
  readonly act: Act;
}

export type Act =
  | { readonly do: "answer"; readonly call: string; readonly answer: ApprovalAnswer }
  | { readonly do: "askWhy"; readonly call: string }
  | { readonly do: "finish"; readonly processes?: "wait" | "stop" }
  | { readonly do: "leave" }
  | { readonly do: "show"; readonly interruption: InterruptionShown }
  | { readonly do: "continue"; readonly id: string; readonly processes?: "wait" | "stop" }
  | { readonly do: "startNew" }
  | { readonly do: "listSessions" }
  | { readonly do: "showAll"; readonly ask: PermissionAsk }
  | { readonly do: "sendQueue" }
  | { readonly do: "withdrawQueue" }
  | { readonly do: "later"; readonly about: string };

/** The most urgent panel; null if nothing needs an answer. `later`: what the person has postponed. */
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
  const { call, choices } = ask;
  return {
    about: `ask:${call}:${ask.digest}`,
    isQuestion: true,
    hasShortChoices: true,
    placeholder: "letter + Enter; a prompt is queued",
    initial: choices.findIndex(({ isDefault }) => isDefault),
    choices: [
      ...choices.map(
        ({ key, word, label, answer, asksWhy }): Choice => ({
          ...{ key, word, label },
          act: asksWhy ? { do: "askWhy", call } : { do: "answer", call, answer },
        }),
      ),
      { ...VIEW, act: { do: "showAll", ask } },
    ],
    lines: (columns, rowsMax) => {
      const head: Line = [
        span("? ", { colour: "yellow", bold: true }),
        span(questionWords(ask), { bold: true }),
        span(others > 0 ? ` (${others} more waiting)` : "", { bold: true }),
      ];
      if (rowsMax < 3) return [cut(head, columns), cut(line(`  ${plainLine(ask.summary)}`), columns)];
      return [cut(head, columns), ...excerptRows(ask, columns, rowsMax - 1)];
    },
  };
}

/** The person denies a call and types the reason into the editor. */
export function whyPanel({ name, call, summary }: PermissionAsk): Panel {
  return {
    about: `why:${call}`,
    choices: [],
    placeholder: "type the reason",
    lines: (columns) => [
      ...wrap(line(`Deny ${visibleLine(name)}: what should the agent know or do instead?`, { bold: true }), columns, {
        first: [span("? ", { colour: "yellow", bold: true })],
        rest: [span("  ")],
      }),
      cut(line(`  ${plainLine(summary)}`, { dim: true }), columns),
      ...wrap(line("Enter denies it and tells the agent · Esc goes back", { dim: true }), columns, {
        first: [span("  ")],
        rest: [span("  ")],
      }),
    ],
  };
}

/** The first process that outlived the agent and runs still. */
export function survivingPid(found: InterruptionShown | null): number | undefined {
  return found?.calls.find((call) => call.process?.running)?.process?.pid;
}

function interruptionPanel(state: ChatState): Panel {
  const found = state.interruption!;
  const pid = survivingPid(found);
  const goOn = state.account.can.answer === true ? "finish it: you are asked about each waiting call" : "finish it";
  const finish: Choice[] =
    pid === undefined
      ? [{ key: "f", label: goOn, act: { do: "finish" } }]
      : [
          { key: "f", label: `finish it: wait for process ${pid}`, act: { do: "finish", processes: "wait" } },
          { key: "k", label: `finish it: stop process ${pid} first`, act: { do: "finish", processes: "stop" } },
        ];
  const isChanged = found.calls.some(({ changes }) => changes && changes.files.length > 0);
  const restore = isChanged ? [restoreHint(state.id)] : [];
  return {
    about: `interruption:${found.turn}:${found.resumes}`,
    choices: [
      ...finish,
      { key: "l", label: "leave it: the model is told when you send your next prompt", act: { do: "leave" } },
      { key: "s", label: "show it", act: { do: "show", interruption: found } },
    ],
    lines: (columns, rowsMax, now) => [
      ...summarizeInterruption(
        found,
        columns,
        rowsMax - state.queue.length - restore.length,
        now,
        state.failure !== null,
      ),
      ...restore.flatMap((text) => wrap(line(`  ${text}`, { dim: true }), columns)),
      ...waiting(state.queue, columns),
    ],
  };
}

/** Nothing can be recorded, so all we know is that the turn did not end. The failure is shown above. */
function brokenPanel(state: ChatState): Panel {
  return {
    about: `broken:${state.failure?.message ?? ""}`,
    choices: [
      { key: "f", label: "finish it, once the problem is fixed", act: { do: "finish" } },
      { key: "l", label: "leave it: the model is told when you send your next prompt", act: { do: "leave" } },
    ],
    lines: (columns) =>
      wrap(
        line("The turn was interrupted. Everything recorded so far is safe.", { bold: true, colour: "yellow" }),
        columns,
      ),
  };
}

function queuePanel(state: ChatState, about: string): Panel {
  const one = state.queue.length === 1;
  return {
    about,
    choices: [
      { key: "s", label: one ? "send it" : "send them one by one", act: { do: "sendQueue" } },
      { key: "w", label: one ? "move it back into the editor" : "withdraw them", act: { do: "withdrawQueue" } },
      { key: "l", label: "later", act: { do: "later", about } },
    ],
    lines: (columns) => [
      line(one ? "1 prompt is queued:" : `${state.queue.length} prompts are queued:`, {
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

/** Instead of a choice: the person is typing something else. */
export const WRITING = -1;
/** Instead of a choice: the question has just appeared, and a key may have been meant for something else. */
export const APPEARING = -2;

function howToChoose(selected: number): string | null {
  if (selected === WRITING) return "clear the input line to choose";
  return selected === APPEARING ? "one moment: keys typed before this question do not count" : null;
}

/** The choices, one per row. */
export function choiceLines(panel: Panel, selected: number, columns: number): Line[] {
  const rows = panel.choices.map(({ key, label }, i): Line => {
    const on = i === selected;
    return [
      span(on ? "▸ " : "  ", { colour: "cyan", bold: true }),
      span(key, { colour: "cyan", bold: true }),
      span(`  ${label}`, on ? { bold: true } : {}),
    ];
  });
  if (panel.choices.length === 0) return [];
  const how = howToChoose(selected) ?? "letter or arrows, then Enter";
  return [...rows, line(`  ${how}`, { dim: true })].map((row) => cut(row, columns));
}

/** The choices by their words, a few on each row: for a question in a low window, which needs the rows itself. */
export function choiceWords(panel: Panel, selected: number, columns: number): Line[] {
  const rows: Span[][] = [[]];
  for (const [i, { key, word = key }] of panel.choices.entries()) {
    const spans = [
      span(i === selected ? "▸ " : "  ", { colour: "cyan", bold: true }),
      span(key, { colour: "cyan", bold: true }),
      span(` ${word} `, i === selected ? { bold: true } : {}),
    ];
    if (lineWidth([...rows.at(-1)!, ...spans]) > columns) rows.push([]);
    rows.at(-1)!.push(...spans);
  }
  return [...rows, line(`  ${howToChoose(selected) ?? "letter or arrows, then Enter"}`, { dim: true })].map((row) =>
    cut(row, columns),
  );
}

/** The choices on one row, for small windows: the selected one, and the letters of the others. */
export function choiceLine(panel: Panel, selected: number, columns: number): Line {
  const chosen = panel.choices[selected];
  if (panel.choices.length === 0) return BLANK;
  if (!chosen) return cut(line(`  ${howToChoose(selected)}`, { dim: true }), columns);
  const others = panel.choices.flatMap(({ key }) => (key === chosen.key ? [] : [key])).join(", ");
  const what = span(`▸ ${chosen.key}  ${chosen.label}`, { colour: "cyan", bold: true });
  return cut([what, span(`  or ${others}`, { dim: true })], columns);
}
