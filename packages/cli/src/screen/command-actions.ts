import type { Chat } from "../host/host.ts";
import type { Surroundings } from "./controller.ts";
import type { Drawing } from "./drawing/renderer.ts";
import type { CommandName } from "./input/slash-commands.ts";
import { chatName } from "./lines/labels.ts";
import { helpLines } from "./lines/notices.ts";
import type { Desk } from "./open-chats.ts";
import type { Picker } from "./pickers/picker.ts";
import type { Picking } from "./pickers/picker-controller.ts";

/** What the slash commands may do to the screen. */
export interface Hands {
  readonly around: Surroundings;
  readonly desk: Desk;
  readonly picking: Picking;
  readonly drawing: Drawing;
  show(chat: Chat, resumed: boolean): void;
  /** Does something that takes its time, with words for the status line. */
  during(words: string, work: () => Promise<unknown>): void;
  /** Puts a text into the editor. */
  put(text: string): void;
  leave(): void;
}

export interface Commands {
  run(name: CommandName, argument: string): void;
  /** A row of a list was taken. */
  chosen(kind: Picker["kind"], id: string): void;
}

export function commandsOn(hands: Hands): Commands {
  const { around, desk, picking, drawing } = hands;
  const here = (): Chat => desk.current!;

  const open = (id: string): void => {
    if (id === desk.current?.id) return;
    hands.during("opening", async () => {
      try {
        hands.show(await desk.open(id, desk.current === null ? around.model : undefined), true);
      } catch (error) {
        // Without a conversation on the screen the list is all there is: it stays, with the reason above it.
        if (desk.current === null) void picking.sessions(undefined);
        throw error;
      }
    });
  };

  const runs: Record<CommandName, (argument: string) => void> = {
    help: () => drawing.write(helpLines(drawing.size.columns)),
    sessions: () => void hands.during("looking", () => picking.sessions(desk.current?.id)),
    fork: () =>
      hands.during("forking", async () => {
        const from = chatName(here().state, 40);
        hands.show(await around.host.fork(here().id), true);
        drawing.notice("info", `A fork of "${from}", which stays as it is: /sessions.`);
      }),
    rewind: () => {
      picking.rewind(here().state);
      if (picking.picker?.rows.length !== 0) return;
      picking.close();
      drawing.notice("info", "There is no prompt yet to go back to.");
    },
    compact: () => hands.during("summing up", () => here().compact()),
    clear: () => hands.during("clearing", () => here().clear()),
    undo: () => {
      if (here().state.canUndo) hands.during("undoing", () => here().undo());
      else drawing.notice("info", "There is nothing to undo: no /compact, /clear or /rewind since the last prompt.");
    },
    model: (name) => {
      if (name === "") {
        drawing.notice(
          "info",
          `The model is ${here().state.model}. Another one: /model provider/name, or /model offline.`,
        );
        return;
      }
      hands.during("changing the model", async () => {
        await here().setModel(name);
        drawing.notice("info", `From now on ${here().state.model} answers.`);
      });
    },
    export: (file) =>
      hands.during("exporting", async () => {
        const path = await around.exportTo(here().id, file === "" ? undefined : file);
        drawing.notice("info", `Written to ${path}.`);
      }),
    rename: (title) => {
      if (title === "") drawing.notice("warning", "What shall it be called? /rename <title>");
      else hands.during("renaming", () => here().rename(title));
    },
    quit: () => hands.leave(),
  };

  return {
    run: (name, argument) => runs[name](argument),
    chosen: (kind, id) => {
      if (kind === "sessions") open(id);
      else hands.during("going back", async () => hands.put(await here().rewind(id)));
    },
  };
}
