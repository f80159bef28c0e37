import { createHash } from "node:crypto";
import { reading, type StoredMessage } from "../../admit/admit.ts";
import { keyTaken } from "../../admit/refusals.ts";
import type { PromptOptions } from "../../admit/to-records.ts";
import type { PromptKeys, PromptPlace } from "../../conversation/prompt-keys.ts";
import type { Json } from "../../journal/record.ts";
import { canonical } from "../../text/canonical.ts";
import { assertKey } from "../writing/once.ts";

/** Of each turn of a session that gives keys, these stay in memory and in every epoch. */
const DIGEST_CHARS = 16;

/** A prompt with a key, as the application gave it, and what the journal holds of it. */
export interface KeyedPrompt {
  readonly given: string;
  readonly recorded: { readonly promptKey: string; readonly promptDigest: string };
}

/** Throws RECORD_INVALID. */
export function keyDigestOf(key: unknown): string {
  assertKey(key);
  return digest(key);
}

/** Null without a key. Throws RECORD_INVALID. */
export function keyedPrompt(options: PromptOptions, prompt: readonly StoredMessage[]): KeyedPrompt | null {
  const given: unknown = reading("options", () => options?.key);
  if (given === undefined) return null;
  const promptKey = keyDigestOf(given);
  const messages: Json[] = prompt.map(({ stored }) => stored);
  return { given: given as string, recorded: { promptKey, promptDigest: digest(canonical(messages)) } };
}

/** Where the prompt with this key is; null if the key is new. Throws KEY_TAKEN if it had another prompt. */
export function placeOf(keys: PromptKeys, { given, recorded }: KeyedPrompt): PromptPlace | null {
  const place = keys.find(recorded.promptKey);
  if (place && place.digest !== recorded.promptDigest) throw keyTaken(given);
  return place;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, DIGEST_CHARS);
}
