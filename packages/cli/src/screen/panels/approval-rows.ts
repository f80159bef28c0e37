import { approvalLines, lineWords, questionWords, type ShownLine } from "../../host/approval/approval-request.ts";
import type { PermissionAsk } from "../../host/host.ts";
import { BLANK, cut, type Line, line, lineText, type Style, span, wrap } from "../lines/line.ts";

/** A longer line is laid out in pieces, so that only the pieces shown cost time. */
const PIECE_CHARS = 400;
/** How many characters come before the text on each row. A short line's first row also has its label. */
const FRONT_CHARS = 4;
const EDGE = [span("  │ ", { colour: "grey" })];
const LABEL = [span("    ")];

const STYLES: Readonly<Record<ShownLine["kind"], Style | undefined>> = {
  short: undefined,
  title: { dim: true },
  block: undefined,
  added: { colour: "green" },
  removed: { colour: "red" },
};

/** A part of a line that is laid out as a unit. */
interface Piece {
  readonly line: ShownLine;
  readonly text: string;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** The full request, for the scrollback. */
export function allRows(ask: PermissionAsk, columns: number): Line[] {
  const head = cut(line(`${questionWords(ask)} Full request:`, { bold: true }), columns);
  return [BLANK, head, ...piecesOf(ask).flatMap((piece) => rowsOf(piece, columns))];
}

/** The full request if it fits; otherwise its start and its end, and exactly how much is hidden. */
export function excerptRows(ask: PermissionAsk, columns: number, rowsMax: number): Line[] {
  const pieces = piecesOf(ask);
  if (pieces.length <= rowsMax) {
    const rows = pieces.flatMap((piece) => rowsOf(piece, columns));
    if (rows.length <= rowsMax) return rows;
  }
  const room = Math.max(0, rowsMax - 1);
  const first = laidOut(pieces, columns, Math.ceil(room / 2), false);
  const last = laidOut(pieces.slice(first.pieces), columns, room - first.rows.length, true);
  const chars = pieces.reduce((sum, { text }) => sum + text.length, 0) - first.chars - last.chars;
  const lines = pieces.filter(({ isLast }) => isLast).length - first.whole - last.whole;
  const hidden = `  … v shows ${chars} more characters, on ${lines} ${lines === 1 ? "line" : "lines"}`;
  return [...first.rows, cut(line(hidden, { colour: "yellow" }), columns), ...last.rows];
}

interface LaidOut {
  readonly rows: readonly Line[];
  /** How many pieces are shown at least in part. `whole`: how many lines they complete. */
  readonly pieces: number;
  readonly whole: number;
  readonly chars: number;
}

/** As many rows as fit, from the start or from the end. */
function laidOut(pieces: readonly Piece[], columns: number, rowsMax: number, isFromEnd: boolean): LaidOut {
  let rows: Line[] = [];
  let [taken, whole, chars] = [0, 0, 0];
  while (taken < pieces.length && rows.length < rowsMax) {
    const piece = (isFromEnd ? pieces.at(-1 - taken) : pieces[taken])!;
    const all = rowsOf(piece, columns);
    const room = rowsMax - rows.length;
    const fit = isFromEnd ? all.slice(-room) : all.slice(0, room);
    const hidden = isFromEnd ? all.slice(0, -room) : all.slice(room);
    rows = isFromEnd ? [...fit, ...rows] : [...rows, ...fit];
    taken += 1;
    chars += piece.text.length - textChars(hidden, piece, isFromEnd);
    // A line counts once: where its end is shown or, when laying out from the end, its start.
    if (hidden.length === 0 && (isFromEnd ? piece.isFirst : piece.isLast)) whole += 1;
  }
  return { rows, pieces: taken, whole, chars };
}

/** How much of the text is on these rows, not counting what comes before it. */
function textChars(rows: readonly Line[], { line: { kind, label }, isFirst }: Piece, isFromStart: boolean): number {
  const labelChars = kind === "short" && isFirst && isFromStart && rows.length > 0 ? label.length : 0;
  return rows.reduce((sum, row) => sum + lineText(row).length - FRONT_CHARS, -labelChars);
}

function piecesOf(ask: PermissionAsk): Piece[] {
  return approvalLines(ask).flatMap((one): Piece[] => {
    const texts = one.text.match(CHUNK) ?? [""];
    return texts.map((text, i) => ({ line: one, text, isFirst: i === 0, isLast: i === texts.length - 1 }));
  });
}

const CHUNK = new RegExp(`.{1,${PIECE_CHARS}}`, "gsu");

function rowsOf({ line: shown, text, isFirst }: Piece, columns: number): Line[] {
  const style = STYLES[shown.kind];
  if (shown.kind === "title") return [cut(line(lineWords(shown), style), columns)];
  if (shown.kind !== "short") return wrap(line(text, style), columns, { first: EDGE, rest: EDGE, hard: true });
  const first = isFirst ? [span(`  ${shown.label}: `, { dim: true })] : LABEL;
  return wrap(line(text), columns, { first, rest: LABEL, hard: true });
}
