import type { Config } from "../config.ts";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import type { Chat } from "../host/host.ts";
import { type LocalHost, openLocalHost } from "../host/local/local-host.ts";
import { assertStore } from "../store/open.ts";
import { resolveId } from "../store/session-id.ts";
import { plainLine } from "../terminal/index.ts";
import { makeExporter } from "./export-file.ts";
import { chatName, shortId } from "./lines/labels.ts";
import { type Left, runScreen, type ScreenOptions } from "./run-screen.tsx";

export interface ChatCommandOptions {
  readonly model?: string;
  readonly continue?: true;
  /** true: choose from a list. */
  readonly resume?: string | true;
  readonly title?: string;
  readonly here?: true;
  /** Sent first. */
  readonly prompt?: string;
}

/** `holdfast chat` and `holdfast resume`. */
export async function runChat(options: ChatCommandOptions, config: Config): Promise<void> {
  if (options.resume !== undefined || options.continue) await assertStore(config);
  const host = await openLocalHost({ config, asks: "person" });
  let words = "";
  try {
    const begin = await beginning(host, options);
    // The same as typing it: if a turn waits for an answer, the prompt is queued behind it.
    if (options.prompt !== undefined && begin !== null && "chat" in begin) await begin.chat.prompt(options.prompt);
    const left = await runScreen({
      ...{ host, begin, startNew: () => startNew(host, options), exportTo: makeExporter(host.sessions) },
      ...defined({ model: options.model }),
    });
    words = leavingWords(left);
  } finally {
    await host.close();
  }
  process.stdout.write(words);
}

/** How to resume, and which turns were interrupted, including those of sessions that were not on the screen. */
function leavingWords({ chat, cutOff }: Left): string {
  const rows: string[] = [];
  if (chat !== null && chat.state.items.length > 0)
    rows.push(`Everything is saved. To resume: holdfast resume ${shortId(chat.id)}`);
  for (const { id, state } of cutOff) {
    const which = id === chat?.id ? "Its turn" : `The turn of "${chatName(state, 40)}"`;
    const where = id === chat?.id ? "there" : `with: holdfast resume ${shortId(id)}`;
    rows.push(`${which} was interrupted. Finish it ${where}.`);
  }
  return rows.map((row) => `${row}\n`).join("");
}

async function beginning(host: LocalHost, options: ChatCommandOptions): Promise<ScreenOptions["begin"]> {
  const model = defined({ model: options.model });
  const cwd = process.cwd();
  if (options.resume === true) return null;
  if (options.resume !== undefined) {
    const id = await resolveId(host.sessions, options.resume);
    return { chat: await host.open(id, { ...model, here: options.here === true }), resumed: true };
  }
  if (options.continue) {
    const found = await host.latest(cwd, model);
    if (found !== null) return { chat: found, resumed: true };
    throw new CommandError(
      EXIT.notFound,
      "SESSION_NOT_FOUND",
      `No free session in this folder (${plainLine(cwd)}). Drop --continue to start one, or choose one with "holdfast resume".`,
    );
  }
  // With a title or a prompt, the person wants a new session.
  const isNew = options.title !== undefined || options.prompt !== undefined;
  const offer = isNew ? null : await host.unfinished(cwd);
  return offer === null ? { chat: await startNew(host, options), resumed: false } : { offer };
}

function startNew(host: LocalHost, { model, title }: ChatCommandOptions): Promise<Chat> {
  return host.create({ cwd: process.cwd(), ...defined({ model, title }) });
}
