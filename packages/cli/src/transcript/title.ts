import { plainLine } from "../terminal/plain.ts";
import { fit } from "../terminal/width.ts";
import type { Item } from "./item.ts";

const COLUMNS = 80;

/** The title of a conversation, else the beginning of its first prompt; "" if it has neither. */
export function titleOf(title: string, items: readonly Item[]): string {
  const first = items.find((item) => item.kind === "prompt");
  return plainLine(title) || fit(plainLine(first?.text.slice(0, 1000) ?? ""), COLUMNS);
}
