import type { Command } from "commander";
import type { Store } from "holdfast";
import { defined } from "../../defined.ts";
import { CommandError, EXIT } from "../../exit.ts";
import { shortId } from "../../short-id.ts";
import { withStore } from "../../store/open.ts";
import { resolveId, titleForFork } from "../../store/session-id.ts";
import { jsonText } from "../../terminal/json.ts";
import { plainLine } from "../../terminal/plain.ts";
import { typedCommand } from "../../typed-command.ts";

interface Options {
  readonly at?: string;
  readonly title?: string;
  readonly json?: true;
}

export function register(program: Command): void {
  program
    .command("fork")
    .argument("<id>", "session id, its first or last characters, or latest")
    .summary("copy a conversation into a new session")
    .description(
      "Creates a new session that starts with the conversation of another one, and prints its id. The original is not changed, and may be in use.",
    )
    .option("--at <turn>", "copy up to and including this turn, or the step of this message (default: everything)")
    .option("--title <title>", "title for the new session")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      '\nExamples:\n  holdfast fork latest --at 3\n  holdfast fork latest --title "another way"\n\n"holdfast show" numbers the turns. Without a title, the fork has the title of the original, marked as a fork.',
    )
    .action((given: string, { at, title, json }: Options, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const from = await resolveId(store, given);
        const place = at === undefined ? null : await placeIn(store, from, at);
        const { nullIfUnreadable } = await import("../../store/usage.ts");
        // The list may fail because of another session; fork this one anyway.
        const named =
          title === undefined ? ((await nullIfUnreadable(titleForFork(store, from, place?.turn))) ?? {}) : { title };
        const session = await store.fork(from, { ...named, ...defined({ at: place?.message }) });
        const shown = session.attributes.title;
        await session.close();
        const { Trust } = await import("../../trust/trust.ts");
        const trust = new Trust(store.url);
        const { folder } = trust.of(from);
        if (folder !== null) trust.of(session.id).workIn(folder);
        const short = shortId(session.id);
        if (json) process.stdout.write(`${jsonText({ id: session.id, from })}\n`);
        else if (!process.stdout.isTTY) process.stdout.write(`${session.id}\n`);
        else process.stdout.write(`${short}  ${plainLine(shown)}\nResume it: ${typedCommand(`resume ${short}`)}\n`);
      }),
    );
}

interface Place {
  readonly message: string;
  /** If the user gave a turn. */
  readonly turn?: number;
}

/** A number is a turn, unless a message has that id. Throws CommandError TURN_UNKNOWN. */
async function placeIn(store: Store, id: string, at: string): Promise<Place> {
  const { entries } = await store.read(id);
  // "show" gives each part of a message its own id, the message id plus a number: use the message.
  const known = [at, at.replace(/\.\d+$/, "")].find((one) => entries.some((entry) => entry.id === one));
  if (known !== undefined) return { message: known };
  // The library says what is wrong.
  if (!/^\d{1,9}$/.test(at)) return { message: at };
  const turn = Number(at);
  const last = entries.findLast((entry) => entry.turn === turn);
  if (last) return { message: last.id, turn };
  const turns = entries.map((entry) => entry.turn).filter((one) => one > 0);
  const there =
    turns.length === 0
      ? "It has no turns yet."
      : `It has ${rangeWords(
          turns.reduce((one, other) => Math.min(one, other)),
          turns.reduce((one, other) => Math.max(one, other)),
        )}; a compaction or /clear removes earlier ones.`;
  throw new CommandError(
    EXIT.usage,
    "TURN_UNKNOWN",
    `Session ${id} has no turn ${turn}. ${there} Nothing was created. "${typedCommand(`show ${id}`)}" numbers the turns.`,
  );
}

function rangeWords(first: number, last: number): string {
  return first === last ? `turn ${first}` : `turns ${first} to ${last}`;
}
