import type { SessionPlace } from "../../contract/agent.ts";
import type { Change, Plan } from "../../contract/plan.ts";
import type { Door } from "../../files/door.ts";
import { LineEntries } from "../../mend/entries.ts";
import { factsOf } from "./facts.ts";
import { format } from "./format.ts";
import { Mending } from "./mending.ts";
import { storeChanges } from "./store.ts";
import { Twins } from "./twins.ts";
import { readWorkspace, workspaceChange } from "./workspace.ts";

/** What makes Copilot CLI load the session whole again. */
export async function plan(session: SessionPlace, door: Door): Promise<Plan | null> {
  const file = await door.open(session.path);
  if (file.isExpanded) return null;
  const lines = new LineEntries(file, format, "main");
  const twins = new Twins(lines, session.path, session.id, door);
  const workspace = readWorkspace(session.path, door);
  const lost: string[] = [];
  new Mending(lines, twins, { session: session.id, ...workspace }, lost).run();
  const edits = lines.edits();
  const changes: Change[] = edits.length > 0 ? [{ type: "edit", path: session.path, size: file.size, edits }] : [];
  const facts = factsOf(lines);
  changes.push(...workspaceChange(session, facts, door));
  changes.push(...storeChanges(session, facts, door));
  return changes.length > 0 ? { changes, lost } : null;
}
