import type { Key } from "../input/keys.ts";

/** A list to choose from, narrowed down by typing. */
export interface Picker {
  readonly kind: "sessions" | "rewind" | "history";
  readonly title: string;
  readonly rows: readonly PickerRow[];
  /** More rows are being loaded. */
  readonly loading: boolean;
  /** The texts of the sessions are being searched for the filter. */
  readonly searching: boolean;
  readonly filter: string;
  /** Where the filter occurs in the text of a session: an excerpt, by its id. */
  readonly hits: ReadonlyMap<string, string>;
  /** The rows that match the filter. */
  readonly matches: readonly PickerRow[];
  /** Index into `matches`. */
  readonly selected: number;
}

export interface PickerRow {
  readonly id: string;
  readonly title: string;
  /** Shown on the right. */
  readonly detail: string;
  /** Shown before the title, in its own colour. */
  readonly mark: string;
  readonly urgent: boolean;
  /** Found by its text: `detail` is an excerpt of it. */
  readonly isByText?: true;
}

export type PickerResult =
  | { readonly kind: "open"; readonly picker: Picker }
  | { readonly kind: "chosen"; readonly id: string }
  | { readonly kind: "cancelled" };

export function openPicker(kind: Picker["kind"], title: string, rows: readonly PickerRow[], loading = false): Picker {
  const hits: Picker["hits"] = new Map();
  return { kind, title, rows, loading, searching: false, filter: "", hits, matches: rows, selected: 0 };
}

/** First the rows that contain all words of the filter, in any order, then those with hits in their text. */
function matching({ rows, filter, hits }: Pick<Picker, "rows" | "filter" | "hits">): readonly PickerRow[] {
  const words = filter.toLowerCase().split(/\s+/u).filter(Boolean);
  if (words.length === 0) return rows;
  const byRow: PickerRow[] = [];
  const byText: PickerRow[] = [];
  for (const row of rows) {
    const text = textOf(row);
    if (words.every((word) => text.includes(word))) byRow.push(row);
    else if (hits.has(row.id)) byText.push({ ...row, detail: hits.get(row.id)!, isByText: true });
  }
  return [...byRow, ...byText];
}

const texts = new WeakMap<PickerRow, string>();

/** Computed once: thousands of rows are compared with each key. */
function textOf(row: PickerRow): string {
  const known = texts.get(row);
  if (known !== undefined) return known;
  const { id, title, detail, mark } = row;
  const text = `${title} ${detail} ${mark} ${id}`.toLowerCase();
  texts.set(row, text);
  return text;
}

export function pickKey(picker: Picker, key: Key, pageRows: number): PickerResult {
  const rows = picker.matches;
  const to = (selected: number): PickerResult => ({
    kind: "open",
    picker: { ...picker, selected: Math.max(0, Math.min(selected, rows.length - 1)) },
  });
  const filtered = (filter: string): PickerResult => {
    if (filter === picker.filter) return to(picker.selected);
    const next = { ...picker, filter, hits: new Map(), searching: false };
    return { kind: "open", picker: { ...next, matches: matching(next), selected: 0 } };
  };
  switch (key.name) {
    case "up":
      return to(picker.selected - 1);
    case "down":
    case "tab":
      return to(picker.selected + 1);
    case "pageUp":
      return to(picker.selected - pageRows);
    case "pageDown":
      return to(picker.selected + pageRows);
    case "home":
      return to(0);
    case "end":
      return to(rows.length - 1);
    case "enter": {
      const row = rows[picker.selected];
      return row === undefined ? to(picker.selected) : { kind: "chosen", id: row.id };
    }
    case "escape":
      // Clear the filter first, then close the list: clearing a word should not lose the list.
      return picker.filter === "" ? { kind: "cancelled" } : filtered("");
    case "interrupt":
    case "endOfInput":
      return { kind: "cancelled" };
    case "text":
    case "paste":
      return filtered(picker.filter + key.text.replaceAll("\n", " "));
    case "backspace":
      return filtered([...picker.filter].slice(0, -1).join(""));
    case "killToStart":
    case "killWord":
      return filtered("");
    default:
      return to(picker.selected);
  }
}

/** Replaces rows or hits, and keeps the selection. */
export function withRows(
  picker: Picker,
  change: Partial<Pick<Picker, "rows" | "loading" | "hits" | "searching">>,
): Picker {
  const chosen = picker.matches[picker.selected]?.id;
  const next = { ...picker, ...change };
  const matches = matching(next);
  const at = picker.selected === 0 ? 0 : matches.findIndex(({ id }) => id === chosen);
  return { ...next, matches, selected: Math.max(0, at) };
}
