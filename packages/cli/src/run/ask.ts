import { createInterface } from "node:readline/promises";
import type { Chat, PermissionAsk } from "../host/host.ts";
import { plainLine } from "../terminal/plain.ts";

let last: Promise<void> = Promise.resolve();

/** Puts a question of permission to the person at the terminal, one after the other. What is no clear yes is a no. */
export function askPerson(chat: Chat, ask: PermissionAsk): Promise<void> {
  last = last.then(async () => {
    const reader = createInterface({ input: process.stdin, output: process.stderr });
    try {
      const question = `${plainLine(ask.summary)}\nAllow it? [y]es, [a]lways in this session (${plainLine(ask.rule)}), [N]o: `;
      const word = (await reader.question(question)).trim().toLowerCase();
      if (chat.state.asks.every(({ call }) => call !== ask.call)) return;
      await chat.answer(ask.call, /^y(?:es)?$/.test(word) ? "allow" : /^a(?:lways)?$/.test(word) ? "always" : "deny");
    } finally {
      reader.close();
    }
  });
  return last;
}
