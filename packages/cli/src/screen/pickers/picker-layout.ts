import { fit, pad } from "../../terminal/index.ts";
import { BLANK, cut, type Line, line, lineWidth, type Span, span } from "../lines/line.ts";
import type { Picker, PickerRow } from "./picker.ts";

/** From this width on, the preview is beside the list; otherwise, below it. */
const WIDE_COLUMNS = 120;

/** The cursor is at the end of the filter. */
export interface PickerLayout {
  readonly lines: Line[];
  readonly cursor: { readonly x: number; readonly y: number };
}

/** `preview`: the end of the selected conversation, laid out for `previewColumns(columns)`. */
export function layOutPicker(picker: Picker, preview: readonly Line[], columns: number, rowsMax: number): PickerLayout {
  const filter = `filter: ${picker.filter}`;
  const head: Line[] = [
    BLANK,
    cut([span(picker.title, { bold: true, colour: "cyan" }), span(countWords(picker), { dim: true })], columns),
    cut([span("filter: ", { dim: true }), span(picker.filter)], columns),
  ];
  const foot: Line[] = [
    cut(line("↑↓ choose · Enter select · type to search titles and texts · Esc back", { dim: true }), columns),
  ];
  const room = Math.max(1, rowsMax - head.length - foot.length - 1);
  const body =
    columns >= WIDE_COLUMNS && preview.length > 0
      ? beside(picker, preview, columns, room)
      : below(picker, preview, columns, room);
  return {
    lines: [...head, ...body, BLANK, ...foot].slice(0, rowsMax),
    cursor: { x: Math.min(columns - 1, lineWidth([span(filter)])), y: 2 },
  };
}

export function previewColumns(columns: number): number {
  return columns >= WIDE_COLUMNS ? columns - Math.floor(columns * 0.55) - 3 : columns - 2;
}

function below(picker: Picker, preview: readonly Line[], columns: number, room: number): Line[] {
  const shown = preview.slice(-Math.max(0, Math.min(Math.floor(room / 2) - 1, preview.length)));
  const list = listRows(picker, columns, Math.max(1, room - (shown.length > 0 ? shown.length + 1 : 0)));
  if (shown.length === 0 || room < 8) return listRows(picker, columns, room);
  const rule = line("─".repeat(columns), { dim: true });
  return [...list, rule, ...shown.map((one) => cut([span("  "), ...one], columns))];
}

function beside(picker: Picker, preview: readonly Line[], columns: number, room: number): Line[] {
  const left = Math.floor(columns * 0.55);
  const list = listRows(picker, left, room);
  const shown = preview.slice(-room);
  return Array.from({ length: Math.max(list.length, shown.length) }, (_, i) => {
    const own = cut(list[i] ?? BLANK, left);
    const gap = pad("", left - lineWidth(own));
    return cut([...own, span(gap), span(" │ ", { dim: true }), ...(shown[i] ?? BLANK)], columns);
  });
}

function listRows(picker: Picker, columns: number, room: number): Line[] {
  const rows = picker.matches;
  if (rows.length === 0) {
    const words = picker.loading || picker.searching ? "  …" : picker.filter === "" ? "  nothing here" : "  no match";
    return [cut(line(words, { dim: true }), columns)];
  }
  const first = Math.max(0, Math.min(picker.selected - Math.floor(room / 2), rows.length - room));
  return rows
    .slice(first, first + room)
    .map((row, i) => rowLine(row, first + i === picker.selected, columns, picker.filter));
}

/** The part of an excerpt around the first word of the filter. */
function aroundHit(excerpt: string, filter: string, columns: number): string {
  const [word = ""] = filter.trim().toLowerCase().split(/\s+/u);
  const at = excerpt.toLowerCase().indexOf(word);
  // Some words before it, at a word boundary.
  const from = at <= columns / 2 ? 0 : excerpt.lastIndexOf(" ", at - Math.floor(columns / 3)) + 1;
  return fit(`${from > 0 ? "…" : ""}${excerpt.slice(from)}`, columns);
}

function rowLine(row: PickerRow, on: boolean, columns: number, filter: string): Line {
  const mark: Span[] = row.mark === "" ? [] : [span(`${row.mark} `, { colour: row.urgent ? "yellow" : "green" })];
  const words = row.isByText ? aroundHit(row.detail, filter, Math.floor(columns / 2)) : row.detail;
  const detail = span(`  ${words}`, row.isByText ? { colour: "yellow" } : { dim: true });
  const detailWidth = lineWidth([detail]);
  const whole: Span[] = [
    span(on ? "▸ " : "  ", { colour: "cyan", bold: true }),
    ...mark,
    span(row.title, on ? { bold: true } : {}),
  ];
  // A title says more than its details: they give way first.
  const room = columns - detailWidth >= 30 ? columns - detailWidth : columns;
  const head = cut(whole, room);
  return room === columns ? head : [...head, span(pad("", room - lineWidth(head))), detail];
}

function countWords(picker: Picker): string {
  const all = `${picker.rows.length.toLocaleString("en")}${picker.loading ? "+" : ""}`;
  if (picker.filter === "") return `  ${all}`;
  const count = picker.matches.filter(({ isByText }) => isByText).length;
  const byText = count > 0 ? `, ${count.toLocaleString("en")} by their text` : "";
  const words = picker.searching ? `${byText}, searching …` : byText;
  return `  ${picker.matches.length.toLocaleString("en")} of ${all}${words}`;
}
