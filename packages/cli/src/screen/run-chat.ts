import type { Config } from "../config.ts";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import type { Chat } from "../host/host.ts";
import { assertStore } from "../store/open.ts";
import { plainLine } from "../terminal/index.ts";
import { typedCommand } from "../typed-command.ts";
import { type ChatPlace, localPlace, offerServer, remotePlace } from "./chat-place.ts";
import { makeExporter } from "./export-file.ts";
import { chatName, shortId } from "./lines/labels.ts";
import { runScreen, type ScreenEnd, type ScreenOptions } from "./run-screen.tsx";

export interface ChatCommandOptions {
  readonly model?: string;
  readonly continue?: true;
  /** true: choose from a list. */
  readonly resume?: string | true;
  readonly title?: string;
  readonly here?: true;
  readonly takeOver?: true;
  /** The address of a server. */
  readonly server?: string;
  /** With a server: the folder, on its machine, of a new session. */
  readonly folder?: string;
  /** With a server: let it finish an interrupted turn of a new session by itself after a restart. */
  readonly finishAfterRestart?: true;
  /** Sent first. */
  readonly prompt?: string;
}

/** `holdfast chat`, `holdfast resume` and `holdfast attach`. */
export async function runChat(options: ChatCommandOptions, config: Config): Promise<void> {
  if (options.server !== undefined) {
    await chatIn(await remotePlace(options.server, options.folder), options);
    return;
  }
  if (options.resume !== undefined || options.continue) await assertStore(config);
  try {
    await chatIn(await localPlace(config), options);
  } catch (error) {
    const found = await offerServer(error);
    if (found === null) throw error;
    const { continue: _latest, here: _here, takeOver: _takeOver, ...rest } = options;
    await chatIn(await remotePlace(found.url, undefined), { ...rest, resume: found.session });
  }
}

async function chatIn(place: ChatPlace, options: ChatCommandOptions): Promise<void> {
  const { host } = place;
  let words = "";
  try {
    const begin = await beginning(place, options);
    // The same as typing it: if a turn waits for an answer, the prompt is queued behind it.
    if (options.prompt !== undefined && begin !== null && "chat" in begin) await begin.chat.prompt(options.prompt);
    const left = await runScreen({
      ...{ host, begin, startNew: () => startNew(place, options) },
      exportTo: makeExporter((id, format) => place.export(id, format)),
      ...defined({ model: options.model }),
    });
    words = place.server === null ? leavingWords(left) : detachedWords(left, place.server);
  } finally {
    await host.close();
  }
  process.stdout.write(words);
}

/** The server keeps the sessions, and goes on with their turns. */
function detachedWords({ chat, cutOff }: ScreenEnd, server: string): string {
  const rows: string[] = [];
  if (chat !== null && chat.state.items.length > 0)
    rows.push(`The server keeps the session. To come back: holdfast attach ${shortId(chat.id)} --server ${server}`);
  for (const { id, state } of cutOff)
    rows.push(id === chat?.id ? "Its turn continues." : `The turn of "${chatName(state, 40)}" continues.`);
  return rows.map((row) => `${row}\n`).join("");
}

/** How to resume, and which turns were interrupted, including those of sessions that were not on the screen. */
function leavingWords({ chat, cutOff }: ScreenEnd): string {
  const rows: string[] = [];
  if (chat !== null && chat.state.items.length > 0)
    rows.push(`Everything is saved. To resume: ${typedCommand(`resume ${shortId(chat.id)}`)}`);
  for (const { id, state } of cutOff) {
    const which = id === chat?.id ? "Its turn" : `The turn of "${chatName(state, 40)}"`;
    const where = id === chat?.id ? "there." : `with: ${typedCommand(`resume ${shortId(id)}`)}`;
    rows.push(`${which} was interrupted. Finish it ${where}`);
  }
  return rows.map((row) => `${row}\n`).join("");
}

async function beginning(place: ChatPlace, options: ChatCommandOptions): Promise<ScreenOptions["begin"]> {
  const { host, cwd } = place;
  const model = defined({ model: options.model });
  if (options.resume === true) return null;
  if (options.resume !== undefined) {
    const id = await place.find(options.resume);
    const { here = false, takeOver = false } = options;
    return { chat: await host.open(id, { ...model, here, takeOver }), resumed: true };
  }
  if (options.continue) {
    const found = await host.latest(cwd, model);
    if (found !== null) return { chat: found, resumed: true };
    throw new CommandError(
      EXIT.notFound,
      "SESSION_NOT_FOUND",
      `No free session in this folder (${plainLine(cwd)}). Drop --continue to start one, or choose one with "${typedCommand("resume")}".`,
    );
  }
  // With a title or a prompt, the person wants a new session.
  const isNew = options.title !== undefined || options.prompt !== undefined;
  const offer = isNew ? null : await host.unfinished(cwd);
  return offer === null ? { chat: await startNew(place, options), resumed: false } : { offer };
}

function startNew({ host, cwd }: ChatPlace, options: ChatCommandOptions): Promise<Chat> {
  const { model, title, finishAfterRestart } = options;
  return host.create({ cwd, ...defined({ model, title, finishAfterRestart }) });
}
