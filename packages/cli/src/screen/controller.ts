import { defined } from "../defined.ts";
import type { Chat, ChatEvent, ChatState, InterruptionShown, UnfinishedSession } from "../host/host.ts";
import { nextMode } from "../tools/permission/mode.ts";
import { bindCommands, type Commands } from "./command-actions.ts";
import { editorColumns, type LiveArea, liveRowsMax, type Size, textColumns } from "./drawing/live-area.ts";
import { Renderer } from "./drawing/renderer.ts";
import type { ScreenEnvironment } from "./environment.ts";
import { applyKey, continueLine, type Editor, markSent, wholeText, withBefore, withText } from "./input/editor.ts";
import type { Key } from "./input/keys.ts";
import { guessCommand, parseSlashCommand } from "./input/slash-commands.ts";
import { userCommandIn } from "./input/user-command.ts";
import { InputLine } from "./input-line.ts";
import { elapsedWords, errorWords } from "./lines/labels.ts";
import { BLANK } from "./lines/line.ts";
import { type Level, REPLACED } from "./lines/notices.ts";
import { continueUnfinished, OpenChats } from "./open-chats.ts";
import { allRows } from "./panels/approval-rows.ts";
import { interruptionDetails } from "./panels/interruption.ts";
import { offerPanel, offerState } from "./panels/offer.ts";
import { type Act, type Panel, panelOf, whyPanel } from "./panels/panel.ts";
import { PanelSelection } from "./panels/panel-selection.ts";
import { pickKey } from "./pickers/picker.ts";
import { PickerController } from "./pickers/picker-controller.ts";
import { layOutPicker } from "./pickers/picker-layout.ts";

/** A model thinks for a while before its first word; after this long, tell the person who is waiting. */
const SILENT_MS = 20_000;

/** Keys and events in, pictures out. Pure functions decide and lay out; this class handles what happens over time. */
export class Controller {
  readonly renderer: Renderer;
  readonly #environment: ScreenEnvironment;
  readonly #chats: OpenChats;
  readonly #pickers: PickerController;
  readonly #commands: Commands;
  readonly #line: InputLine;
  readonly #later = new Set<string>();
  readonly #selection: PanelSelection;
  /** Chats that are being stopped. */
  readonly #stopping = new Set<string>();
  /** Queued prompts that are being withdrawn. */
  readonly #taken = new Set<string>();
  readonly #left = Promise.withResolvers<Chat | null>();
  /** The unfinished session that the person is asked about, until another chat is shown. */
  #offer: UnfinishedSession | null = null;
  /** The call that the person is denying, while typing the reason. */
  #why: string | null = null;
  /** The next Ctrl+C quits. */
  #armed = false;
  #busy: string | null = null;
  #cutOff: readonly Chat[] = [];
  #hasLeft = false;

  constructor(environment: ScreenEnvironment, size: Size) {
    this.#environment = environment;
    this.renderer = new Renderer(size, environment.colour, () => ({
      area: this.#liveArea(),
      active:
        this.#busy !== null || this.#line.userCommands.running !== null || this.#chats.state?.status === "running",
    }));
    this.#selection = new PanelSelection(environment.now, () => this.renderer.drawSoon());
    this.#chats = new OpenChats(environment.host, (event, current) => this.#heard(event, current), environment.now);
    this.#pickers = new PickerController(
      environment.host,
      environment.now,
      () => this.renderer.drawSoon(),
      (error) => this.renderer.notice("error", errorWords(error)),
    );
    const { host, now } = environment;
    this.#line = new InputLine({ host, now, renderer: this.renderer, pickers: this.#pickers });
    this.#commands = bindCommands({
      environment,
      chats: this.#chats,
      pickers: this.#pickers,
      renderer: this.renderer,
      show: (chat, resumed) => this.show(chat, resumed),
      during: (words, work) => this.#during(words, work),
      put: (text) => {
        this.#editor = withBefore(this.#editor, text);
      },
      leave: () => this.leave(),
    });
  }

  /** Resolves when the person leaves, with the chat that was on the screen. */
  get left(): Promise<Chat | null> {
    return this.#left.promise;
  }

  /** The chats that were in mid-turn when the person left. */
  get cutOff(): readonly Chat[] {
    return this.#cutOff;
  }

  /** Shows a conversation. */
  show(chat: Chat, resumed: boolean): void {
    const before = this.#chats.current;
    const isOffered = this.#offer !== null;
    this.#offer = null;
    this.#chats.show(chat);
    this.#line.opened(chat.state);
    this.renderer.open(chat.state, resumed, before !== null);
    if (before !== null) this.#try(() => this.#chats.closeIfIdle(before));
    else if (!isOffered) for (const words of this.#environment.host.warnings) this.renderer.notice("warning", words);
    const { asks, interruption } = chat.state;
    if (asks.length > 0 && interruption !== null)
      this.renderer.notice("info", "This approval was pending when the last process ended. Nothing has run since.");
    this.renderer.draw();
  }

  /** Before anything else: asks whether to continue the session that was left unfinished here. */
  offer(found: UnfinishedSession): void {
    this.#offer = found;
    for (const words of this.#environment.host.warnings) this.renderer.notice("warning", words);
    this.renderer.draw();
  }

  /** Shows the list of sessions. */
  pick(): void {
    this.renderer.write([BLANK]);
    this.#commands.run("sessions", "");
    this.renderer.draw();
  }

  leave(): void {
    this.#hasLeft = true;
    this.renderer.end(this.#chats.state);
    this.#cutOff = this.#chats.atWork;
    this.#chats.release();
    this.#left.resolve(this.#chats.current);
  }

  key(key: Key): void {
    // Several keys may arrive at once: ignore those after the one that left.
    if (this.#hasLeft) return;
    const armed = this.#armed;
    this.#armed = false;
    if (this.#pickers.picker !== null) this.#pressPicker(key);
    else if (key.name === "interrupt") this.#interrupt(armed);
    else if (this.#chats.current !== null) this.#press(key);
    else if (this.#offer !== null) this.#pressOffer(key);
    if (this.#chats.state !== null) this.#line.look(this.#chats.state);
    this.renderer.draw();
  }

  /** Only the listed keys choose; what is typed stays in the line for the chat that follows. */
  #pressOffer(key: Key): void {
    if (this.#busy !== null || this.#pressPanel(key)) return;
    const { text } = this.#editor;
    if (key.name === "endOfInput" && text === "") this.leave();
    else if (key.name === "enter" && text.trim() !== "") {
      const words = "Choose first: clear the line, then Enter continues the session, or n starts a new one.";
      this.renderer.notice("info", `${words} Nothing was sent.`);
    } else if (key.name !== "enter") this.#edit(key);
  }

  /** Lets `edit` change the whole text of the line, as another program does. */
  async editText(edit: (text: string) => Promise<string>): Promise<void> {
    if (this.#chats.current !== null && this.#pickers.picker === null) await this.#line.edit(edit);
    this.renderer.draw();
  }

  get #editor(): Editor {
    return this.#line.editor;
  }

  set #editor(editor: Editor) {
    this.#line.editor = editor;
  }

  #press(key: Key): void {
    if (this.#pressPanel(key)) return;
    const empty = this.#editor.text === "";
    switch (key.name) {
      case "escape":
        this.#escape();
        return;
      case "shiftTab":
        this.#chats.current!.setMode(nextMode(this.#chats.state!.mode));
        return;
      case "searchHistory":
        this.#line.search(this.#chats.state!);
        return;
      case "paste":
        this.#line.paste(key, this.#chats.state!, editorColumns(this.renderer.size.columns));
        return;
      case "tab":
        this.#line.complete();
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
        if (this.#editor.at === 0) this.#line.loadOlder(this.#chats.state!);
        return;
      default:
        this.#edit(key);
    }
  }

  /** Stops what runs. Twice: clears the line, which the history keeps; on an empty one, goes back to a prompt. */
  #escape(): void {
    const isTwice = this.#line.isSecondEscape();
    if (this.#line.userCommands.stop() || this.#stopTurn() || !isTwice) return;
    if (this.#editor.text === "") this.#commands.run("rewind", "");
    else this.#editor = markSent(this.#editor);
  }

  #edit(key: Key): void {
    this.#editor = applyKey(this.#editor, key, editorColumns(this.renderer.size.columns)) ?? this.#editor;
  }

  #pressPicker(key: Key): void {
    const { kind } = this.#pickers.picker!;
    const picked = pickKey(this.#pickers.picker!, key, Math.max(1, this.renderer.size.rows - 8));
    if (picked.kind === "open") {
      this.#pickers.change(picked.picker);
      return;
    }
    this.#pickers.close();
    if (picked.kind === "chosen" && kind === "history") this.#line.recall(Number(picked.id));
    else if (picked.kind === "chosen") this.#commands.chosen(kind, picked.id);
    // Without anything behind the list there is nothing to go back to.
    else if (this.#chats.current === null && this.#offer === null) this.leave();
  }

  /**
   * Whether the panel took this key. A letter counts only once Enter follows it, so that a prompt may start with it.
   */
  #pressPanel(key: Key): boolean {
    const panel = this.#panel();
    if (panel === null) return false;
    if (this.#why !== null) return this.#pressWhy(key, this.#why);
    const { choices } = panel;
    const at = this.#selection.indexIn(panel, this.#editor.text);
    if (at < 0) return false;
    const by = key.name === "up" ? -1 : key.name === "down" || key.name === "tab" ? 1 : 0;
    if (by !== 0 && this.#editor.text === "") {
      this.#selection.move(panel, at + by);
      return true;
    }
    if (key.name !== "enter") return false;
    this.#editor = withText(this.#editor, "");
    const { act } = choices[at]!;
    if (this.#chats.current === null) this.#actOnOffer(act);
    else this.#act(act, this.#chats.current);
    return true;
  }

  #actOnOffer(act: Act): void {
    if (act.do === "show") this.#showInterruption(act.interruption);
    if (act.do === "listSessions") this.#commands.run("sessions", "");
    if (act.do === "startNew")
      this.#during("starting", async () => this.show(await this.#environment.startNew(), false));
    if (act.do === "continue")
      this.#during("opening", async () => {
        const chat = await this.#chats.open(act.id, this.#environment.model);
        this.show(chat, true);
        await continueUnfinished(chat, act.processes);
      });
  }

  #showInterruption(found: InterruptionShown): void {
    this.renderer.write(interruptionDetails(found, textColumns(this.renderer.size.columns)));
  }

  /** The person types why a call is denied. */
  #pressWhy(key: Key, call: string): boolean {
    if (key.name === "escape") {
      this.#why = null;
      this.#editor = withText(this.#editor, "");
      return true;
    }
    if (key.name !== "enter") return false;
    const more = continueLine(this.#editor);
    const reason = wholeText(this.#editor).trim();
    if (more !== null) this.#editor = more;
    else if (reason !== "") {
      this.#why = null;
      this.#editor = withText(this.#editor, "");
      this.#try(() => this.#chats.current!.answer(call, "deny", reason));
    }
    return true;
  }

  #act(act: Act, chat: Chat): void {
    switch (act.do) {
      case "answer":
        this.#try(() => chat.answer(act.call, act.answer));
        return;
      case "askWhy":
        this.#why = act.call;
        return;
      case "finish":
        this.#try(() => chat.finish(defined({ processes: act.processes })));
        return;
      case "leave":
        chat.leave();
        return;
      case "show":
        this.#showInterruption(act.interruption);
        return;
      case "showAll":
        this.renderer.write(allRows(act.ask, textColumns(this.renderer.size.columns)));
        return;
      case "sendQueue":
        this.#try(() => chat.resumeQueue());
        return;
      case "withdrawQueue":
        this.#try(async () => {
          const { queue } = chat.state;
          for (const { id } of queue) await chat.withdraw(id);
          for (const one of queue.toReversed()) this.#line.takeBack(one);
        });
        return;
      case "later":
        this.#later.add(act.about);
    }
  }

  /** Stops the running turn or clears the line, which the history keeps. Pressed again, quits. */
  #interrupt(armed: boolean): void {
    if (armed) {
      this.leave();
      return;
    }
    this.#armed = true;
    if (this.#line.userCommands.stop() || this.#stopTurn()) return;
    if (this.#editor.text !== "") this.#editor = markSent(this.#editor);
  }

  #stopTurn(): boolean {
    const chat = this.#chats.current;
    if (chat === null || !isAtWork(chat.state)) return false;
    // A command may take a while to stop: show that the key was received.
    this.#stopping.add(chat.id);
    this.#try(() => chat.stop("user").finally(() => this.#stopping.delete(chat.id)));
    return true;
  }

  /** Moves the last queued prompt back into the editor. */
  #takeBack(): boolean {
    const chat = this.#chats.current!;
    const last = chat.state.queue.findLast(({ id }) => !this.#taken.has(id));
    if (last === undefined) return false;
    this.#taken.add(last.id);
    this.#try(async () => {
      await chat.withdraw(last.id).finally(() => this.#taken.delete(last.id));
      this.#line.takeBack(last);
    });
    return true;
  }

  #enter(): void {
    const more = continueLine(this.#editor);
    const text = wholeText(this.#editor);
    const parsed = parseSlashCommand(text);
    const command = userCommandIn(text);
    if (more !== null) this.#editor = more;
    else if (command !== null) {
      this.#editor = markSent(this.#editor);
      this.#try(() => this.#line.userCommands.run(command, this.#chats.state!.cwd));
    } else if (parsed.kind === "unknown") this.renderer.notice("warning", unknownWords(parsed.name));
    else if (text.trim() === "" && this.#editor.text.trim() !== "")
      this.renderer.notice("info", "Write something to go with the image.");
    else if (parsed.kind === "command") {
      this.#editor = markSent(this.#editor);
      this.#commands.run(parsed.name, parsed.argument);
    } else if (text.trim() !== "") this.#try(() => this.#line.send(this.#chats.current!));
  }

  #try(work: () => Promise<unknown>): void {
    void (async () => {
      try {
        await work();
      } catch (error) {
        // The chat's state already shows its failure.
        const told = error instanceof Error && error.message === this.#chats.state?.failure?.message;
        if (!told) this.renderer.notice("error", errorWords(error));
      }
      this.renderer.drawSoon();
    })();
  }

  #during(words: string, work: () => Promise<unknown>): void {
    if (this.#busy !== null) {
      this.renderer.notice("warning", `Busy (${this.#busy}): try again in a moment.`);
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
      // Draw first, so that the notice comes after the rows that are already finished.
      if (told !== null) this.renderer.draw();
      if (told !== null) this.renderer.notice(told.level, told.text);
      if (event.type === "replaced") this.#replaced(event.reason);
    }
    this.renderer.drawSoon();
  }

  #replaced(reason: keyof typeof REPLACED): void {
    const undo = this.#chats.state?.canUndo ? " /undo restores it, until the next prompt." : "";
    this.renderer.notice("info", `${REPLACED[reason]}${undo}`);
  }

  #panel(): Panel | null {
    const { state } = this.#chats;
    if (state === null && this.#offer !== null) return offerPanel(this.#offer);
    const denied = state?.asks.find(({ call }) => call === this.#why);
    if (denied !== undefined) return whyPanel(denied);
    // It was withdrawn meanwhile.
    this.#why = null;
    return state === null ? null : panelOf(state, this.#later);
  }

  #liveArea(): LiveArea {
    const state = this.#chats.state ?? (this.#offer && offerState(this.#offer));
    const { columns } = this.renderer.size;
    const panel = this.#panel();
    if (panel !== null) this.#selection.see(panel, this.#editor.text);
    const isStopping = state !== null && this.#stopping.has(state.id);
    const behind: LiveArea =
      state === null
        ? { lines: [], cursor: null }
        : this.renderer.conversation({
            state,
            editor: this.#editor,
            candidates: this.#line.candidates,
            panel,
            selected: panel === null ? 0 : this.#selection.indexIn(panel, this.#editor.text),
            status: {
              frame: this.renderer.frame,
              elapsedMs: this.#chats.elapsedMs(state.id),
              busy: isStopping ? "stopping" : (this.#busy ?? this.#line.userCommands.running),
              hint: this.#armed ? "Ctrl+C again to quit" : isStopping ? "" : hintOf(state, this.#chats.silentMs(state)),
              elsewhere: this.#chats.elsewhere,
            },
            now: this.#environment.now(),
          });
    const { picker } = this.#pickers;
    if (picker === null) return behind;
    return layOutPicker(picker, this.#pickers.preview(columns), columns, liveRowsMax(this.renderer.size));
  }
}

function unknownWords(name: string): string {
  const other = guessCommand(name);
  return `Unknown command /${name}. ${other === null ? "" : `Did you mean /${other}? `}/help lists the commands.`;
}

function canStop({ status, isCompacting }: ChatState): boolean {
  return status === "running" || isCompacting;
}

/** What the next key does and, after a while, why nothing is visible. */
function hintOf(state: ChatState, silentMs: number): string {
  if (!canStop(state)) return "";
  const isTool = state.items.some((item) => item.kind === "call" && item.state === "running");
  if (isTool || silentMs < SILENT_MS) return "Esc to stop";
  return `Esc to stop · the model has been silent for ${elapsedWords(silentMs)}`;
}

/** Waiting for approval counts as work: it can be stopped without an answer. */
function isAtWork(state: ChatState): boolean {
  return canStop(state) || state.status === "waiting";
}

/** The notice for an event; null if it has none. */
function noticeOf(event: ChatEvent): { readonly level: Level; readonly text: string } | null {
  if (event.type === "notice") return event;
  if (event.type === "retry") return { level: "warning", text: `Retrying the request: ${event.reason}` };
  if (event.type !== "turn.ended" || event.outcome !== "aborted") return null;
  return { level: "info", text: `stopped by ${event.by ?? "someone"}; everything produced so far is saved` };
}
