import type { ChatState } from "../../host/host.ts";
import { plainLine } from "../../terminal/index.ts";
import { chatName, folderWords, shortId } from "./labels.ts";
import { BLANK, cut, type Line, line, type Style, span, wrap } from "./line.ts";

export type Level = "info" | "warning" | "error";

const LEVELS: Record<Level, { readonly mark: string; readonly style: Style }> = {
  info: { mark: "· ", style: { dim: true } },
  warning: { mark: "! ", style: { colour: "yellow" } },
  error: { mark: "✗ ", style: { colour: "red" } },
};

/** A notice from the program itself. */
export function noticeLines(level: Level, text: string, columns: number): Line[] {
  const { mark, style } = LEVELS[level];
  return [BLANK, ...wrap(line(plainLine(text), style), columns, { first: [span(mark, style)], rest: [span("  ")] })];
}

const STAND_IN =
  "offline is a scripted stand-in, not a model. To work with a real one: /model anthropic/…, or --model, or holdfast config.";

/** The header of a conversation, written when it is shown. */
export function headLines(state: ChatState, columns: number, resumed: boolean): Line[] {
  const facts = [shortId(state.id), plainLine(state.model), folderWords(state.cwd, 60)].join(" · ");
  const rows: Line[] = [
    cut(
      [
        span("holdfast ", { bold: true, colour: "cyan" }),
        span(resumed ? chatName(state, 60) : "new session", { bold: true }),
      ],
      columns,
    ),
    cut(line(facts, { dim: true }), columns),
  ];
  if (state.model.startsWith("offline/")) rows.push(...wrap(line(STAND_IN, { dim: true }), columns));
  for (const words of state.damage) rows.push(...noticeLines("warning", words, columns));
  return rows;
}

/** Separates two conversations in one scrollback. */
export function ruleLine(columns: number): Line {
  return line("━".repeat(Math.min(columns, 60)), { colour: "grey" });
}

/** Said when the conversation was replaced. */
export const REPLACED = {
  compaction: "The conversation was compacted.",
  clear: "The conversation was cleared.",
  rewind: "Rewound to before that prompt.",
  undo: "Undone: the previous conversation is back.",
};
