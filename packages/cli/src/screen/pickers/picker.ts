import type { Key } from "../input/keys.ts";

/** A list to choose from, narrowed down by typing. */
export interface Picker {
  readonly kind: "sessions" | "rewind" | "history";
  readonly title: string;
  readonly rows: readonly PickerRow[];
  /** More rows are being loaded. */
  readonly loading: boolean;
  readonly filter: string;
  /** Index into the rows that match the filter. */
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
}

export type Picked =
  | { readonly kind: "open"; readonly picker: Picker }
  | { readonly kind: "chosen"; readonly id: string }
  | { readonly kind: "cancelled" };

export function openPicker(kind: Picker["kind"], title: string, rows: readonly PickerRow[], loading = false): Picker {
  return { kind, title, rows, loading, filter: "", selected: 0 };
}

/** The rows that contain all words of the filter, in any order. */
export function passing(picker: Picker): readonly PickerRow[] {
  const words = picker.filter.toLowerCase().split(/\s+/u).filter(Boolean);
  if (words.length === 0) return picker.rows;
  return picker.rows.filter(({ id, title, detail, mark }) => {
    const all = `${title} ${detail} ${mark} ${id}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

export function pickKey(picker: Picker, key: Key, pageRows: number): Picked {
  const rows = passing(picker);
  const to = (selected: number): Picked => ({
    kind: "open",
    picker: { ...picker, selected: Math.max(0, Math.min(selected, rows.length - 1)) },
  });
  const filtered = (filter: string): Picked => ({ kind: "open", picker: { ...picker, filter, selected: 0 } });
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

/** Replaces the rows and keeps the selection. */
export function withRows(picker: Picker, rows: readonly PickerRow[], loading: boolean): Picker {
  const chosen = passing(picker)[picker.selected]?.id;
  const next = { ...picker, rows, loading };
  const at = passing(next).findIndex(({ id }) => id === chosen);
  return { ...next, selected: Math.max(0, at) };
}
