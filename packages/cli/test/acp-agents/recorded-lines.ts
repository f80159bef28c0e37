import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import { messageOf } from "./shown.ts";

/**
 * The lines about a session that an editor saw and that its journal does not hold. Text may be recorded in other pieces
 * than it came in; everything else must be there as it was. Pure.
 */
export function linesNotRecorded(lines: readonly string[], session: string, records: readonly unknown[]): string[] {
  const objects = new Set<string>();
  const recorded = { agent_message_chunk: "", agent_thought_chunk: "" };
  for (const record of records) {
    for (const value of objectsIn(record)) {
      objects.add(canonical(value));
      const { kind, text } = chunkIn(value) ?? {};
      if (kind !== undefined) recorded[kind] += text;
    }
  }
  const seen = { agent_message_chunk: "", agent_thought_chunk: "" };
  return lines.filter((line) => {
    const { method, params } = messageOf(line);
    if (method === undefined || params?.sessionId !== session) return false;
    const { sessionId: _, ...rest } = params;
    const said = method === "session/update" ? rest.update : rest;
    const { kind, text } = chunkIn(said) ?? {};
    if (kind === undefined) return !objects.has(canonical(said));
    seen[kind] += text;
    return !recorded[kind].startsWith(seen[kind]);
  });
}

/** A chunk of nothing but text. */
function chunkIn(value: unknown): { kind: "agent_message_chunk" | "agent_thought_chunk"; text: string } | null {
  const { sessionUpdate: kind, content } = (value ?? {}) as Partial<SessionUpdate & { content: unknown }>;
  if (kind !== "agent_message_chunk" && kind !== "agent_thought_chunk") return null;
  const { type, text } = (content ?? {}) as { type?: string; text?: string };
  return type === "text" && text !== undefined ? { kind, text } : null;
}

function* objectsIn(value: unknown): Generator<object> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield value;
  for (const inner of Object.values(value)) yield* objectsIn(inner);
}

/** The same for equal values, in whatever order their members are. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}
