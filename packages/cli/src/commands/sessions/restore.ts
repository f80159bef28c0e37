import type { Command } from "commander";
import { shortId } from "../../short-id.ts";
import { forEach } from "../../store/for-each-session.ts";
import { withStore } from "../../store/open.ts";
import { familyInTrash, findInTrash, trashIn } from "../../store/trash.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { fit } from "../../terminal/width.ts";
import { typedCommand } from "../../typed-command.ts";

const TITLE_COLUMNS = 60;

export function register(program: Command): void {
  program
    .command("restore")
    .argument("<id...>", 'ids of deleted sessions, their first or last characters, or "latest", the last one deleted')
    .summary("bring back deleted sessions")
    .description(
      'Moves sessions and those of their sub-agents from the trash back into the store, as they were. Never replaces an existing session. "holdfast trash" lists deleted sessions.',
    )
    .option("--json", "one JSON object per session, one per line")
    .addHelpText("after", "\nExamples:\n  holdfast restore latest\n  holdfast restore 5f2a91c0")
    .action((given: readonly string[], { json }: { readonly json?: true }, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const trash = await trashIn(store);
        // All of them are found before the first one moves.
        const found = new Map(given.map((one) => findInTrash(trash, one, store)).map((one) => [one.id, one]));
        const done = new Set<string>();
        await forEach([...found.keys()], async (id) => {
          // It came back with its parent.
          if (done.has(id)) return;
          const agents = familyInTrash(trash, id);
          for (const one of [id, ...agents]) {
            await store.restore(one);
            done.add(one);
          }
          const title = fit(plainLine(found.get(id)!.title), TITLE_COLUMNS);
          const named = title === "" ? "" : ` "${title}"`;
          const text = `${shortId(id)}${named} is back${agentWords(agents.length)}. Resume it: ${typedCommand(`resume ${shortId(id)}`)}\n`;
          process.stdout.write(json ? `${jsonText({ id, restored: true, agents })}\n` : text);
        });
      }),
    );
}

function agentWords(count: number): string {
  if (count === 0) return "";
  return count === 1 ? ", with its sub-agent's session" : `, with the ${count} sessions of its sub-agents`;
}
