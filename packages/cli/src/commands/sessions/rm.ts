import type { Command } from "commander";
import type { Store } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { CommandError, EXIT } from "../../exit.ts";
import { shortId, shortIds } from "../../short-id.ts";
import { familyOf } from "../../store/children.ts";
import { forEach, idsFor } from "../../store/for-each-session.ts";
import { withStore } from "../../store/open.ts";
import { touchOutputs } from "../../store/output-folders.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { typedCommand } from "../../typed-command.ts";

export function register(program: Command): void {
  program
    .command("rm")
    .argument("<id...>", "session ids, or their first or last characters")
    .summary("move sessions to the trash")
    .description(
      'Moves sessions and those of their sub-agents to the trash. "holdfast restore" brings them back; "holdfast gc" deletes them for good after a week. Refuses a session if it or one of its sub-agents is open.',
    )
    .option("--json", "one JSON object per session, one per line")
    .addHelpText("after", "\nExample:\n  holdfast ls --since 1h --json | jq -r .id | xargs holdfast rm")
    .action((given: readonly string[], { json }: { readonly json?: true }, command: Command) =>
      withStore(command.optsWithGlobals(), async (store, _config, journals) => {
        const gone = new Set<string>();
        const moved: string[] = [];
        await forEach(await idsFor(store, given, false), async (id) => {
          // It was moved with its parent.
          if (gone.has(id)) return;
          const agents = await familyOf(store, id);
          await assertFree(journals, id, agents);
          for (const one of [id, ...agents]) {
            await toTrash(store, one);
            gone.add(one);
          }
          moved.push(id);
          process.stdout.write(json ? `${jsonText({ id, trashed: true, agents })}\n` : wordsOf(id, agents));
        });
        if (!json && moved.length > 0) process.stdout.write(undoWords(moved));
      }),
    );
}

/** Checked before anything is moved: a family moves as a whole. The store itself checks the parent's lease. */
async function assertFree(journals: JournalStore, id: string, agents: readonly string[]): Promise<void> {
  for (const agent of agents) {
    const holder = await journals.holder(agent);
    if (!holder) continue;
    const who = plainLine(`${holder.app} (process ${holder.pid} on ${holder.host}, since ${holder.since})`);
    throw new CommandError(
      EXIT.busy,
      "SESSION_BUSY",
      `Session ${id} was not moved: its sub-agent's session ${agent} is open in ${who}. Nothing was touched. Try again when that process has ended.`,
    );
  }
}

async function toTrash(store: Store, id: string): Promise<void> {
  await store.delete(id);
  touchOutputs(store.url, id);
}

function wordsOf(id: string, agents: readonly string[]): string {
  const count = agents.length === 1 ? "its sub-agent's session" : `the ${agents.length} sessions of its sub-agents`;
  return `${shortId(id)} is in the trash${agents.length === 0 ? "" : `, with ${count}`}.\n`;
}

/** More are easier to choose from a list. */
const UNDO_MAX = 5;

function undoWords(ids: readonly string[]): string {
  if (ids.length > UNDO_MAX)
    return `To undo: "${typedCommand("trash")}" lists them, "${typedCommand("restore <id>")}" brings one back.\n`;
  return `To undo: ${typedCommand(`restore ${[...shortIds(ids).values()].join(" ")}`)}\n`;
}
