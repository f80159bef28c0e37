import type { Chat } from "../host/host.ts";
import type { Renderer } from "./drawing/renderer.ts";
import type { ScreenEnvironment } from "./environment.ts";
import { helpLines } from "./help-lines.ts";
import type { CommandName } from "./input/slash-commands.ts";
import { chatName } from "./lines/labels.ts";
import type { OpenChats } from "./open-chats.ts";
import type { Picker } from "./pickers/picker.ts";
import type { PickerController } from "./pickers/picker-controller.ts";

/** What the slash commands can do to the screen. */
export interface CommandContext {
  readonly environment: ScreenEnvironment;
  readonly chats: OpenChats;
  readonly pickers: PickerController;
  readonly renderer: Renderer;
  show(chat: Chat, resumed: boolean): void;
  /** Runs something that takes time, and shows `words` in the status line meanwhile. */
  during(words: string, work: () => Promise<unknown>): void;
  /** Puts text into the editor. */
  put(text: string): void;
  leave(): void;
}

export interface Commands {
  run(name: CommandName, argument: string): void;
  /** A row of a list was chosen. */
  chosen(kind: Picker["kind"], id: string): void;
}

export function bindCommands(context: CommandContext): Commands {
  const { environment, chats, pickers, renderer } = context;
  const here = (): Chat => chats.current!;

  const open = (id: string): void => {
    if (id === chats.current?.id) return;
    context.during("opening", async () => {
      try {
        context.show(await chats.open(id, chats.current === null ? environment.model : undefined), true);
      } catch (error) {
        // Without a conversation on the screen, keep the list open, with the reason above it.
        if (chats.current === null) void pickers.sessions(undefined);
        throw error;
      }
    });
  };

  const runs: Record<CommandName, (argument: string) => void> = {
    help: () => renderer.write(helpLines(renderer.size.columns)),
    sessions: () => void context.during("looking", () => pickers.sessions(chats.current?.id)),
    fork: () =>
      context.during("forking", async () => {
        const from = chatName(here().state, 40);
        context.show(await environment.host.fork(here().id), true);
        renderer.notice("info", `Forked from "${from}", which is unchanged. Switch back with /sessions.`);
      }),
    rewind: () => {
      pickers.rewind(here().state);
      if (pickers.picker?.rows.length !== 0) return;
      pickers.close();
      renderer.notice("info", "No prompt to rewind to yet.");
    },
    compact: () => context.during("compacting", () => here().compact()),
    clear: () => context.during("clearing", () => here().clear()),
    undo: () => {
      if (here().state.canUndo) context.during("undoing", () => here().undo());
      else renderer.notice("info", "Nothing to undo: no /compact, /clear or /rewind since the last prompt.");
    },
    model: (name) => {
      if (name === "") {
        renderer.notice(
          "info",
          `The model is ${here().state.model}. To change it: /model provider/name, or /model offline.`,
        );
        return;
      }
      context.during("changing the model", async () => {
        await here().setModel(name);
        renderer.notice("info", `Now using ${here().state.model}.`);
      });
    },
    export: (file) =>
      context.during("exporting", async () => {
        const path = await environment.exportTo(here().id, file === "" ? undefined : file);
        renderer.notice("info", `Saved to ${path}.`);
      }),
    rename: (title) => {
      if (title === "") renderer.notice("warning", "Give a title: /rename <title>");
      else context.during("renaming", () => here().rename(title));
    },
    quit: () => context.leave(),
  };

  return {
    run: (name, argument) => runs[name](argument),
    chosen: (kind, id) => {
      if (kind === "sessions") open(id);
      else
        context.during("rewinding", async () => {
          const item = here().state.items.find((one) => one.id === id);
          context.put(await here().rewind(id));
          if (item?.kind === "prompt" && (item.files?.length ?? 0) > 0)
            renderer.notice("info", "The files of that prompt are not in the line: drop them again.");
        });
    },
  };
}
