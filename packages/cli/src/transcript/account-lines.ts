import type { Account } from "holdfast";
import { shortId } from "../short-id.ts";
import { typedCommand } from "../typed-command.ts";
import { callWords } from "./words.ts";

/**
 * What a reader should know about a session besides its transcript. Empty if its last turn completed. The user of this
 * command is also told how to finish the turn.
 */
export function accountLines(
  { session, turn, state, calls, can, words, queued }: Account,
  reader: "user" | "other" = "user",
): string[] {
  if (state === "idle" && queued === 0) return [];
  const lines = [turn === null ? `${capital(words.status)}.` : `Turn ${turn}: ${words.status}.`];
  for (const call of calls) lines.push(`  ${callWords(call)}: ${call.words}`);
  for (const line of words.detail) lines.push(`  ${line}`);
  if (reader === "other") return lines;
  if (can.finish === true && calls.some(({ changes }) => changes && changes.files.length > 0))
    lines.push(restoreHint(session));
  if (can.finish === true) lines.push(`Finish it with: ${typedCommand(`run --resume ${shortId(session)} --finish`)}`);
  else if (can.finish.no === "written-by") lines.push(can.finish.words);
  return lines;
}

/** For files that have changed since a call began that may have changed them. */
export function restoreHint(session: string): string {
  return `To put files back first, with no agent in it: ${typedCommand(`restore-files ${shortId(session)}`)}`;
}

/** Which other process has the session open; null if none has. */
export function heldWords({ can: { stop } }: Account): string | null {
  return stop !== true && stop.no === "held-by" ? stop.words : null;
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
