import { parse } from "./claude-code-damage.ts";
import { fileOf, linesOf } from "./line-damage.ts";

/** What `claude --resume <session> --fork-session` writes, as 2.1.328 does: a copy of all records, then its own. */
export function forkOf(session: Buffer, id: string, forkId: string): Buffer {
  const at = "2031-01-01T00:00:00.000Z";
  const copied = linesOf(session)
    .map((line) => parse(line) as unknown as Record<string, unknown>)
    .filter(({ uuid }) => uuid !== undefined)
    .map((record) => ({
      ...record,
      ...(record["type"] === "assistant" ? { requestSessionId: id } : { promptId: "other" }),
      sessionId: forkId,
    })) as Record<string, unknown>[];
  const uuid = "00000000-0000-4000-8000-000000000001";
  const { cwd, version } = copied.at(-1)!;
  const own = { ...{ parentUuid: copied.at(-1)!["uuid"], isSidechain: false, type: "user", uuid, timestamp: at } };
  const records = [
    { type: "mode", mode: "normal", sessionId: forkId },
    { type: "queue-operation", operation: "enqueue", timestamp: at, sessionId: forkId, content: "Only in the fork." },
    ...copied,
    { ...own, message: { role: "user", content: "Only in the fork." }, cwd, version, sessionId: forkId },
    { type: "last-prompt", lastPrompt: "Only in the fork.", leafUuid: uuid, sessionId: forkId },
  ];
  return fileOf(records.map((record) => Buffer.from(JSON.stringify(record))));
}
