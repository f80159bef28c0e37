import type { AvailableCommand } from "@agentclientprotocol/sdk/unstable";
import type { Chat } from "@holdfast/server/contract";

interface SlashCommand {
  readonly description: string;
  readonly hint?: string;
  /** Returns what to tell the person, if anything. A turn that it starts ends before it resolves. */
  run(chat: Chat, argument: string): Promise<string | null>;
}

const COMMANDS: { readonly [name: string]: SlashCommand } = {
  finish: {
    description: "Finish the interrupted turn",
    run: async (chat) => {
      const { account, queue } = chat.state;
      const { finish } = account.can;
      if (finish === true) await chat.finish();
      else if (queue.length > 0) await chat.resumeQueue();
      else return finish.words;
      return null;
    },
  },
  compact: {
    description: "Replace the conversation by a summary, to free the model's context",
    run: async (chat) => {
      await chat.compact();
      return "The conversation was compacted. /undo restores it.";
    },
  },
  clear: {
    description: "Start over with an empty conversation in this session",
    run: async (chat) => {
      await chat.clear();
      return "The conversation was cleared. /undo restores it.";
    },
  },
  undo: {
    description: "Undo the last /compact or /clear",
    run: async (chat) => {
      if (!chat.state.canUndo) return "Nothing to undo.";
      await chat.undo();
      return "The conversation was restored.";
    },
  },
  rename: {
    description: "Give the session a title",
    hint: "title",
    run: async (chat, title) => {
      if (title === "") return "Give the new title after /rename.";
      await chat.rename(title);
      return null;
    },
  },
};

export const availableCommands: AvailableCommand[] = Object.entries(COMMANDS).map(([name, { description, hint }]) => ({
  name,
  description,
  ...(hint === undefined ? {} : { input: { hint } }),
}));

/** The command that a prompt is, if it is one. Anything else that begins with a slash goes to the model. */
export function commandIn(prompt: string): { readonly run: (chat: Chat) => Promise<string | null> } | null {
  const found = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(prompt.trim());
  const command = found && Object.hasOwn(COMMANDS, found[1]!) ? COMMANDS[found[1]!]! : null;
  return command && { run: (chat) => command.run(chat, found![2]?.trim() ?? "") };
}
