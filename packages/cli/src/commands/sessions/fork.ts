import type { Command } from "commander";
import type { Session, Store } from "holdfast";
import { failureOf } from "../../failure.ts";
import { withStore } from "../../store/open.ts";
import { resolveId, titleForFork } from "../../store/session-id.ts";
import { jsonText } from "../../terminal/json.ts";

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
    .option("--at <message>", "copy up to and including the step of this message (default: everything)")
    .option("--title <title>", "title for the new session")
    .option("--json", "print JSON")
    .addHelpText("after", '\nExample:\n  holdfast fork latest --title "another way"')
    .action((given: string, { at, title, json }: Options, command: Command) =>
      withStore(command.optsWithGlobals(), async (store) => {
        const from = await resolveId(store, given);
        const { nullIfUnreadable } = await import("../../store/usage.ts");
        // The list may fail because of another session; fork this one anyway.
        const named = title === undefined ? ((await nullIfUnreadable(titleForFork(store, from))) ?? {}) : { title };
        const session = await forkAt(store, from, at, named);
        await session.close();
        const { Trust } = await import("../../trust/trust.ts");
        const trust = new Trust(store.url);
        const { folder } = trust.of(from);
        if (folder !== null) trust.of(session.id).workIn(folder);
        process.stdout.write(json ? `${jsonText({ id: session.id, from })}\n` : `${session.id}\n`);
      }),
    );
}

async function forkAt(
  store: Store,
  from: string,
  at: string | undefined,
  named: { readonly title?: string },
): Promise<Session<unknown>> {
  if (at === undefined) return store.fork(from, named);
  try {
    return await store.fork(from, { ...named, at });
  } catch (error) {
    // "show" gives each part of a message its own id, the message id plus a number: use the message.
    const message = at.replace(/\.\d+$/, "");
    if (message === at || failureOf(error).code !== "MESSAGE_UNKNOWN") throw error;
    return store.fork(from, { ...named, at: message });
  }
}
