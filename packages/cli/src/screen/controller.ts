import type { Chat, ChatEvent, ChatState, Host } from "../host/host.ts";
import { type Commands, commandsOn } from "./command-actions.ts";
import { editorColumns, liveRowsMax, type Size, textColumns, type View } from "./drawing/live-area.ts";
import { Drawing } from "./drawing/renderer.ts";
import { continued, EDITOR, type Editor, edit, sent, withHistory, withText } from "./input/editor.ts";
import type { Key } from "./input/keys.ts";
import { completed, meant, parse } from "./input/slash-commands.ts";
import { elapsedWords, errorWords } from "./lines/labels.ts";
import { BLANK } from "./lines/line.ts";
import type { Level } from "./lines/notices.ts";
import { Desk } from "./open-chats.ts";
import { allRows } from "./panels/approval-rows.ts";
import { interruptionDetails } from "./panels/interruption.ts";
import { type Act, APPEARING, type Panel, panelOf, WRITING } from "./panels/panel.ts";
import { pickKey } from "./pickers/picker.ts";
import { Picking } from "./pickers/picker-controller.ts";
import { pickerView } from "./pickers/picker-layout.ts";

/** A model thinks for a while before its first word; beyond this, whoever waits wants to know. */
const SILENT_MS = 20_000;

/** A key that comes sooner than this after a question appeared was typed before the person saw it. */
const APPEARING_MS = 250;

export interface Surroundings {
  readonly host: Host;
  readonly colour: boolean;
  /** For the session that the screen begins with, if it is taken from the list. Default: the one that it used last. */
  readonly model?: string;
  readonly now: () => number;
  /** Writes the conversation to a file, and answers its path. */
  readonly exportTo: (id: string, file: string | undefined) => Promise<string>;
}

/** Keys and events in, pictures out. All that decides or lays out is in pure functions; here is what happens in time. */
export class Controller {
  readonly drawing: Drawing;
  readonly #around: Surroundings;
  readonly #desk: Desk;
  readonly #picking: Picking;
  readonly #commands: Commands;
  readonly #later = new Set<string>();
  /** Chats that are being stopped. */
  readonly #stopping = new Set<string>();
  /** Queued prompts that are being taken back. */
  readonly #taken = new Set<string>();
  readonly #left = Promise.withResolvers<Chat | null>();
  #editor: Editor = EDITOR;
  /** What is chosen in the panel, as long as it is about the same. */
  #selection = { about: "", at: 0 };
  /** The question that stands on the screen, since when, and whether the line was begun before it. */
  #question = { about: "", since: 0, isTypedAhead: false };
  /** The next Ctrl+C leaves. */
  #armed = false;
  #busy: string | null = null;
  #cutOff: readonly Chat[] = [];
  #hasLeft = false;

  constructor(around: Surroundings, size: Size) {
    this.#around = around;
    this.drawing = new Drawing(size, around.colour, () => ({
      view: this.#view(),
      active: this.#busy !== null || this.#desk.state?.status === "running",
    }));
    this.#desk = new Desk(around.host, (event, current) => this.#heard(event, current), around.now);
    this.#picking = new Picking(around.host, around.now, () => this.drawing.soon());
    this.#commands = commandsOn({
      around,
      desk: this.#desk,
      picking: this.#picking,
      drawing: this.drawing,
      show: (chat, resumed) => this.show(chat, resumed),
      during: (words, work) => this.#during(words, work),
      put: (text) => this.#putBefore(text),
      leave: () => this.leave(),
    });
  }

  /** Resolves when the person has left, with the chat that was on the screen. */
  get left(): Promise<Chat | null> {
    return this.#left.promise;
  }

  /** The chats that were in the middle of a turn when the person left. */
  get cutOff(): readonly Chat[] {
    return this.#cutOff;
  }

  /** A conversation comes onto the screen. */
  show(chat: Chat, resumed: boolean): void {
    const before = this.#desk.current;
    this.#desk.show(chat);
    this.#editor = withHistory(this.#editor, chat.state.items);
    this.drawing.open(chat.state, resumed, before !== null);
    if (before !== null) this.#try(() => this.#desk.giveBack(before));
    else for (const words of this.#around.host.warnings) this.drawing.notice("warning", words);
    const { asks, interruption } = chat.state;
    if (asks.length > 0 && interruption !== null)
      this.drawing.notice("info", "This question was open when the last process ended. Nothing has run since.");
    this.drawing.now();
  }

  /** The list of sessions, to choose one from. */
  pick(): void {
    this.drawing.write([BLANK]);
    this.#commands.run("sessions", "");
    this.drawing.now();
  }

  leave(): void {
    this.#hasLeft = true;
    this.drawing.end(this.#desk.state);
    this.#cutOff = this.#desk.atWork;
    this.#desk.release();
    this.#left.resolve(this.#desk.current);
  }

  key(key: Key): void {
    // Keys come several at once: what was pressed behind the one that left is for nobody.
    if (this.#hasLeft) return;
    const armed = this.#armed;
    this.#armed = false;
    if (this.#picking.picker !== null) this.#pressPicker(key);
    else if (key.name === "interrupt") this.#interrupt(armed);
    else if (this.#desk.current !== null) this.#press(key);
    this.drawing.now();
  }

  #press(key: Key): void {
    if (this.#pressPanel(key)) return;
    const empty = this.#editor.text === "";
    switch (key.name) {
      case "escape":
        this.#stopTurn();
        return;
      case "tab":
        this.#complete();
        return;
      case "enter":
        this.#enter();
        return;
      case "endOfInput":
        if (empty) this.leave();
        else this.#edit({ name: "delete" });
        return;
      case "up":
        if (!empty || !this.#takeBack()) this.#edit(key);
        return;
      default:
        this.#edit(key);
    }
  }

  #complete(): void {
    const text = completed(this.#editor.text);
    if (text !== this.#editor.text) this.#editor = withText(this.#editor, text);
  }

  #edit(key: Key): void {
    this.#editor = edit(this.#editor, key, editorColumns(this.drawing.size.columns)) ?? this.#editor;
  }

  #pressPicker(key: Key): void {
    const { kind } = this.#picking.picker!;
    const picked = pickKey(this.#picking.picker!, key, Math.max(1, this.drawing.size.rows - 8));
    if (picked.kind === "open") {
      this.#picking.change(picked.picker);
      return;
    }
    this.#picking.close();
    if (picked.kind === "chosen") this.#commands.chosen(kind, picked.id);
    // Without a conversation behind the list there is nothing to go back to.
    else if (this.#desk.current === null) this.leave();
  }

  /** Was it a key for what waits for a word? A letter counts with Enter behind it: a prompt that begins with it is none. */
  #pressPanel(key: Key): boolean {
    const panel = this.#panel();
    if (panel === null) return false;
    const { choices, about } = panel;
    const at = this.#selectedIn(panel);
    if (at < 0) return false;
    const by = key.name === "up" ? -1 : key.name === "down" || key.name === "tab" ? 1 : 0;
    if (by !== 0 && this.#editor.text === "") {
      this.#selection = { about, at: (at + by + choices.length) % choices.length };
      return true;
    }
    if (key.name !== "enter") return false;
    this.#editor = withText(this.#editor, "");
    this.#act(choices[at]!.act, this.#desk.current!);
    return true;
  }

  #act(act: Act, chat: Chat): void {
    switch (act.do) {
      case "answer":
        this.#try(() => chat.answer(act.call, act.word));
        return;
      case "finish":
        this.#try(() => chat.finish(act.processes === undefined ? {} : { processes: act.processes }));
        return;
      case "leave":
        chat.leave();
        return;
      case "show":
        this.drawing.write(interruptionDetails(chat.state.interruption!, textColumns(this.drawing.size.columns)));
        return;
      case "showAll":
        this.drawing.write(allRows(act.ask, textColumns(this.drawing.size.columns)));
        return;
      case "sendQueue":
        this.#try(() => chat.resumeQueue());
        return;
      case "withdrawQueue":
        this.#try(async () => {
          const { queue } = chat.state;
          for (const { id } of queue) await chat.withdraw(id);
          this.#putBefore(queue.map(({ text }) => text).join("\n"));
        });
        return;
      case "later":
        this.#later.add(act.about);
    }
  }

  /** Stops what runs, or empties the line, which the history keeps; the second one leaves. */
  #interrupt(armed: boolean): void {
    if (armed) {
      this.leave();
      return;
    }
    this.#armed = true;
    if (!this.#stopTurn() && this.#editor.text !== "") this.#editor = sent(this.#editor);
  }

  #stopTurn(): boolean {
    const chat = this.#desk.current;
    if (chat === null || !isAtWork(chat.state)) return false;
    // A command that does not want to end is given its time: who has pressed the key is told that it was heard.
    this.#stopping.add(chat.id);
    this.#try(() => chat.stop("user").finally(() => this.#stopping.delete(chat.id)));
    return true;
  }

  /** What was typed while it came stays behind it. */
  #putBefore(text: string): void {
    const { text: typed } = this.#editor;
    this.#editor = withText(this.#editor, typed === "" ? text : `${text}\n${typed}`);
  }

  /** The prompt that was queued last comes back into the editor. */
  #takeBack(): boolean {
    const chat = this.#desk.current!;
    const last = chat.state.queue.findLast(({ id }) => !this.#taken.has(id));
    if (last === undefined) return false;
    this.#taken.add(last.id);
    this.#try(async () => {
      await chat.withdraw(last.id).finally(() => this.#taken.delete(last.id));
      this.#putBefore(last.text);
    });
    return true;
  }

  #enter(): void {
    const more = continued(this.#editor);
    const { text } = this.#editor;
    const parsed = parse(text);
    if (more !== null) this.#editor = more;
    else if (parsed.kind === "unknown") this.drawing.notice("warning", unknownWords(parsed.name));
    else if (text.trim() !== "") {
      this.#editor = sent(this.#editor);
      if (parsed.kind === "command") this.#commands.run(parsed.name, parsed.argument);
      else this.#try(() => this.#prompt(text));
    }
  }

  async #prompt(text: string): Promise<void> {
    try {
      await this.#desk.current!.prompt(text);
    } catch (error) {
      // What could not be recorded is not lost either: it can be sent again.
      if (this.#editor.text === "") this.#editor = withText(this.#editor, text);
      throw error;
    }
  }

  #try(work: () => Promise<unknown>): void {
    void (async () => {
      try {
        await work();
      } catch (error) {
        // A failure of the chat is told by its state already.
        const told = error instanceof Error && error.message === this.#desk.state?.failure?.message;
        if (!told) this.drawing.notice("error", errorWords(error));
      }
      this.drawing.soon();
    })();
  }

  #during(words: string, work: () => Promise<unknown>): void {
    if (this.#busy !== null) {
      this.drawing.notice("warning", `Not now (${this.#busy}): ask again in a moment.`);
      return;
    }
    this.#busy = words;
    this.#try(async () => {
      try {
        await work();
      } finally {
        this.#busy = null;
      }
    });
  }

  #heard(event: ChatEvent, current: boolean): void {
    if (current) {
      const told = noticeOf(event);
      // Behind what is finished, which the next picture writes.
      if (told !== null) this.drawing.now();
      if (told !== null) this.drawing.notice(told.level, told.text);
      if (event.type === "replaced") this.#replaced(event.reason);
    }
    this.drawing.soon();
  }

  #replaced(reason: keyof typeof REPLACED): void {
    const undo = this.#desk.state?.canUndo ? " /undo brings back what was, until the next prompt." : "";
    this.drawing.notice("info", `${REPLACED[reason]}${undo}`);
  }

  #panel(): Panel | null {
    const { state } = this.#desk;
    return state === null ? null : panelOf(state, this.#later);
  }

  /** Which choice Enter would take; WRITING or APPEARING if none. */
  #selectedIn(panel: Panel): number {
    const { about, choices, initial = 0 } = panel;
    const { text } = this.#editor;
    if (panel.isQuestion) {
      if (this.#question.about !== about || this.#around.now() - this.#question.since < APPEARING_MS) return APPEARING;
      if (text !== "" && this.#question.isTypedAhead) return WRITING;
    }
    const word = text.trim().toLowerCase();
    if (text !== "") return choices.findIndex((choice) => choice.key === word || choice.word === word);
    return this.#selection.about === about ? Math.min(this.#selection.at, choices.length - 1) : initial;
  }

  /** Remembers since when a question can be seen. What is in the line by then, or comes in the first moment, was not meant for it. */
  #notice({ about, isQuestion }: Panel): void {
    if (!isQuestion) return;
    const hasText = this.#editor.text !== "";
    if (this.#question.about !== about) {
      this.#question = { about, since: this.#around.now(), isTypedAhead: hasText };
      setTimeout(() => this.drawing.soon(), APPEARING_MS).unref();
    } else if (!hasText) this.#question.isTypedAhead = false;
    else if (this.#around.now() - this.#question.since < APPEARING_MS) this.#question.isTypedAhead = true;
  }

  #view(): View {
    const { state } = this.#desk;
    const { columns } = this.drawing.size;
    const panel = this.#panel();
    if (panel !== null) this.#notice(panel);
    const isStopping = state !== null && this.#stopping.has(state.id);
    const behind: View =
      state === null
        ? { lines: [], cursor: null }
        : this.drawing.conversation({
            state,
            editor: this.#editor,
            panel,
            selected: panel === null ? 0 : this.#selectedIn(panel),
            status: {
              frame: this.drawing.frame,
              elapsedMs: this.#desk.elapsedMs(state.id),
              busy: isStopping ? "stopping" : this.#busy,
              hint: this.#armed ? "Ctrl+C again leaves" : isStopping ? "" : hintOf(state, this.#desk.silentMs(state)),
              elsewhere: this.#desk.elsewhere,
            },
            now: this.#around.now(),
          });
    const { picker } = this.#picking;
    if (picker === null) return behind;
    return pickerView(picker, this.#picking.preview(columns), columns, liveRowsMax(this.drawing.size));
  }
}

function unknownWords(name: string): string {
  const other = meant(name);
  return `There is no /${name}. ${other === null ? "" : `Is /${other} meant? `}/help lists the commands.`;
}

function canStop({ status, isCompacting }: ChatState): boolean {
  return status === "running" || isCompacting;
}

/** What the next key would do; and why nothing is to be seen, if it lasts. */
function hintOf(state: ChatState, silentMs: number): string {
  if (!canStop(state)) return "";
  const isTool = state.items.some((item) => item.kind === "call" && item.state === "running");
  if (isTool || silentMs < SILENT_MS) return "Esc stops";
  return `Esc stops · no word from the model for ${elapsedWords(silentMs)}`;
}

/** Waiting for a word is work too: whoever stops it need not answer. */
function isAtWork(state: ChatState): boolean {
  return canStop(state) || state.status === "waiting";
}

/** What an event says in words of its own. */
function noticeOf(event: ChatEvent): { readonly level: Level; readonly text: string } | null {
  if (event.type === "notice") return event;
  if (event.type === "retry") return { level: "warning", text: `The request is made again: ${event.reason}` };
  if (event.type !== "turn.ended" || event.outcome !== "aborted") return null;
  return { level: "info", text: `stopped by ${event.by ?? "somebody"}; what was produced is kept` };
}

const REPLACED = {
  compaction: "The conversation was summed up.",
  clear: "The conversation begins anew.",
  rewind: "Back to before that prompt.",
  undo: "Undone: the conversation is what it was before.",
};
