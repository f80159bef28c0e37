import type { JournalStore, NewRecord } from "holdfast/store";

export const SESSION = "01a1f4a4-4f95-70df-a93b-b3d9c866ef23";
/** Longer than a row of the database can be, so that a record is in pieces. */
const LONG = 2_500_000;

/** The records from the `first` on that are one unit: one to four of them, some of them long. */
export function unitFrom(first: number): (NewRecord & { readonly text: string })[] {
  const rest = 4 - (first % 4);
  return Array.from({ length: first % 8 < 4 ? rest : 1 }, (_, i) => noteOf(first + i));
}

function noteOf(n: number): NewRecord & { readonly text: string } {
  return { kind: "note", text: `${n} ${n % 9 === 8 ? "x".repeat(LONG) : ""}` };
}

/** The texts of all notes, in order. */
export async function textsIn(store: JournalStore): Promise<string[]> {
  const texts: string[] = [];
  for await (const record of store.history(SESSION)) if (record.kind === "note") texts.push(String(record["text"]));
  return texts;
}
