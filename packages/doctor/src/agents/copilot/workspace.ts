import { basename, dirname, join } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Change } from "../../contract/plan.ts";
import { type Door, Refused } from "../../files/door.ts";
import type { SessionFacts } from "./facts.ts";
import { workspaceProblems } from "./surroundings.ts";

/** `workspace.yaml` beside the events: one `name: value` on each line. */

const BYTES_MAX = 2 ** 20;

/** What can be read of it. */
export function readWorkspace(path: string, door: Door): { readonly cwd: string | null; readonly at: string | null } {
  const fields = fieldsIn(textOf(join(dirname(path), "workspace.yaml"), door));
  return { cwd: fields.get("cwd") ?? null, at: fields.get("created_at") ?? null };
}

/** The file as Copilot writes it, from what is readable of it and from the events; nothing if it is whole. */
export function workspaceChange(session: SessionPlace, facts: SessionFacts, door: Door): readonly Change[] {
  const path = join(dirname(session.path), "workspace.yaml");
  const size = basename(session.path) === "events.jsonl" ? door.facts(path)?.size : undefined;
  if (size === undefined || [...workspaceProblems(path, session.id, door)].every(({ kind }) => kind === "unopenable"))
    return [];
  const at = facts.startedAt ?? new Date(0).toISOString();
  const fields = new Map([
    ["id", session.id],
    ["cwd", facts.cwd ?? "/"],
    ["client_name", "github/cli"],
    ["name", JSON.stringify(facts.firstPrompt ?? "")],
    ["user_named", "false"],
    ["summary_count", "0"],
    ["fork_count", "0"],
    ["created_at", at],
    ["updated_at", facts.endedAt ?? at],
    ...fieldsIn(textOf(path, door)),
    ["id", session.id],
  ]);
  const bytes = Buffer.from([...fields].map(([name, value]) => `${name}: ${value}\n`).join(""));
  const why = "builds workspace.yaml again";
  return [{ type: "edit", path, size, edits: [{ offset: 0, length: size, bytes, grade: "rebuilt", why }] }];
}

const LINE = /^([a-z_]+):[ \t]+(\S[^\0\ufffd]*)$/;

function fieldsIn(text: string): Map<string, string> {
  const lines = text.split(/[\0\r\n]+/);
  // The last one may be cut off.
  const whole = text.endsWith("\n") ? lines : lines.slice(0, -1);
  return new Map(
    whole.flatMap((line) => {
      const [, name, value] = LINE.exec(line) ?? [];
      return name === undefined || value === undefined ? [] : [[name, value] as const];
    }),
  );
}

function textOf(path: string, door: Door): string {
  if (door.facts(path) === null) return "";
  try {
    using file = door.openRaw(path);
    return Buffer.from(file.read(0, BYTES_MAX)).toString("utf8");
  } catch (error) {
    if (error instanceof Refused) return "";
    throw error;
  }
}
