import type { Chat, ChatState, Host, PromptImage } from "../host/host.ts";
import type { Renderer } from "./drawing/renderer.ts";
import { Assistance } from "./input/assistance.ts";
import { imagesIn, labelled } from "./input/chips.ts";
import { readImage } from "./input/dropped-image.ts";
import {
  applyKey,
  EDITOR,
  type Editor,
  markSent,
  wholeText,
  withBefore,
  withHistory,
  withImage,
  withInserted,
  withOlder,
  withText,
} from "./input/editor.ts";
import type { Key } from "./input/keys.ts";
import { completeCommand } from "./input/slash-commands.ts";
import { errorWords } from "./lines/labels.ts";
import type { PickerController } from "./pickers/picker-controller.ts";
import { UserCommands } from "./user-commands.ts";

/** Esc twice within this time is one gesture. */
const TWICE_MS = 600;

interface Parts {
  readonly host: Host;
  readonly renderer: Renderer;
  readonly pickers: PickerController;
  readonly now: () => number;
}

/** The line that the person types in, and what helps with it: files, earlier prompts, commands of one's own. */
export class InputLine {
  editor: Editor = EDITOR;
  readonly userCommands: UserCommands;
  readonly #parts: Parts;
  readonly #assistance: Assistance;
  /** The session whose folder's earlier prompts are in the history, or on their way. */
  #olderOf: string | null = null;
  #escapedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#assistance = new Assistance(() => parts.renderer.drawSoon());
    this.userCommands = new UserCommands(parts.renderer, (change) => {
      this.editor = change(this.editor);
    });
  }

  /** The files that the mention at the cursor could mean. */
  get candidates(): readonly string[] {
    return this.#assistance.candidates(this.editor);
  }

  /** Another conversation is on the screen: its prompts are the history. */
  opened({ items }: ChatState): void {
    this.editor = withHistory(this.editor, items);
    this.#olderOf = null;
  }

  /** Call it whenever the line may have changed. */
  look({ cwd }: ChatState): void {
    this.#assistance.look(this.editor, cwd);
  }

  /** A file that is dropped on the terminal arrives as a paste. */
  paste(key: Key & { readonly name: "paste" }, { cwd }: ChatState, columns: number): void {
    const dropped = this.#assistance.dropped(key.text, cwd);
    if (dropped === null) this.editor = applyKey(this.editor, key, columns) ?? this.editor;
    else {
      const image = this.#imageIn(dropped.path);
      this.editor = withInserted(
        image === null ? withInserted(this.editor, dropped.mention) : withImage(this.editor, image),
        " ",
      );
    }
  }

  /** Sends what is in the line. If it could not be recorded, it stays there, to be sent again. */
  async send(chat: Chat): Promise<void> {
    const sent = this.editor;
    this.editor = markSent(sent);
    try {
      await chat.prompt(wholeText(sent), imagesIn(sent.text, sent.chips));
    } catch (error) {
      if (this.editor.text === "") this.editor = { ...this.editor, text: sent.text, cursor: sent.text.length };
      throw error;
    }
  }

  /** Puts a prompt that was taken out of the queue before what is in the line. */
  takeBack({ text, images = [] }: ChatState["queue"][number]): void {
    this.editor = withBefore(this.editor, text);
    for (const image of images) this.editor = withImage(this.editor, image);
  }

  /** Tab. */
  complete(): void {
    const completed = this.#assistance.complete(this.editor);
    if (completed !== null) this.editor = completed;
    const text = completeCommand(this.editor.text);
    if (text !== this.editor.text) this.editor = withText(this.editor, text);
  }

  /** Whether this Esc follows another one at once. */
  isSecondEscape(): boolean {
    const now = this.#parts.now();
    const isTwice = now - this.#escapedAt < TWICE_MS;
    this.#escapedAt = isTwice ? Number.NEGATIVE_INFINITY : now;
    return isTwice;
  }

  /** Opens the list of earlier prompts. */
  search(state: ChatState): void {
    this.#list();
    this.loadOlder(state);
  }

  /** Takes the prompt that was chosen from that list, counted from the latest. */
  recall(fromEnd: number): void {
    const text = this.editor.history.at(-fromEnd) ?? "";
    this.editor = { ...this.editor, text, cursor: text.length };
  }

  /** Adds the prompts of earlier sessions in this folder to the history. */
  loadOlder({ id, cwd }: ChatState): void {
    if (this.#olderOf === id) return;
    this.#olderOf = id;
    const { host, renderer, pickers } = this.#parts;
    host.prompts(cwd, id).then(
      (older) => {
        if (this.#olderOf !== id) return;
        this.editor = withOlder(this.editor, older);
        if (pickers.picker?.kind === "history") this.#list();
        renderer.drawSoon();
      },
      (error) => renderer.notice("error", errorWords(error)),
    );
  }

  /** Lets another program change the whole text. */
  async edit(run: (text: string) => Promise<string>): Promise<void> {
    const before = wholeText(this.editor);
    try {
      const text = await run(before);
      if (text !== before) this.editor = withText(this.editor, text);
    } catch (error) {
      this.#parts.renderer.notice("error", errorWords(error));
    }
  }

  #imageIn(path: string): PromptImage | null {
    try {
      return readImage(path);
    } catch (error) {
      this.#parts.renderer.notice("warning", `${errorWords(error)} Only its path is in the prompt.`);
      return null;
    }
  }

  #list(): void {
    const { history, chips } = this.editor;
    this.#parts.pickers.history(history.map((text) => labelled(text, chips)));
  }
}
