import * as fs from "node:fs";
import { join } from "node:path";
import type { LoadStore } from "../contract.ts";
import { anthropicForm } from "../turns.ts";

interface Stored {
  readonly title: string;
  readonly messages: unknown[];
}

/** What many agents do: the whole conversation is written again for each message. */
export const loadWholeFile: LoadStore = async () => async (folder) => ({
  create: async (title) => {
    const path = join(folder, `${crypto.randomUUID()}.json`);
    const stored: Stored = { title, messages: [] };
    return {
      id: path,
      prepare: ({ pieces }) => {
        const messages = pieces.map(anthropicForm);
        return async () => {
          for (const message of messages) {
            stored.messages.push(message);
            write(path, stored);
          }
        };
      },
      close: async () => {},
    };
  },
  fill: async (turns) => {
    const path = join(folder, `${crypto.randomUUID()}.json`);
    write(path, { title: "", messages: Array.from(turns, ({ pieces }) => pieces.map(anthropicForm)).flat() });
    return path;
  },
  resume: async (path) => {
    const stored = read(path);
    return { messages: stored.messages.length, kept: stored };
  },
  list: async () => {
    const rows = fs.readdirSync(folder).map((name) => {
      const path = join(folder, name);
      return { title: read(path).title, at: fs.statSync(path).mtimeMs };
    });
    return rows.length;
  },
  close: async () => {},
});

function write(path: string, stored: Stored): void {
  fs.writeFileSync(`${path}.tmp`, JSON.stringify(stored));
  fs.renameSync(`${path}.tmp`, path);
}

function read(path: string): Stored {
  return JSON.parse(fs.readFileSync(path, "utf8")) as Stored;
}
