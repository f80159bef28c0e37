import type { ModelMessage } from "ai";
import type { Entry, Session } from "holdfast";
import { CommandError, EXIT } from "../../exit.ts";
import { textOf } from "./describe.ts";

/** What stood before this prompt, and what it asked. */
export function before(
  { entries }: Pick<Session<ModelMessage>, "entries">,
  message: string,
): { readonly kept: Entry<ModelMessage>[]; readonly prompt: string } {
  const at = entries.findIndex(({ id }) => id === message);
  const entry = entries[at];
  if (entry?.message.role !== "user" || entry.synthetic)
    throw new CommandError(EXIT.usage, "MESSAGE_UNKNOWN", "Only a prompt of this conversation can be gone back to.");
  const kept = entries.slice(0, at).filter((one) => one.replacedBy === undefined);
  return { kept, prompt: textOf(entry.message) };
}
