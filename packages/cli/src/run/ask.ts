import { createInterface } from "node:readline";
import type { Chat, PermissionAsk } from "../host/host.ts";
import { plainLine } from "../terminal/plain.ts";

let last: Promise<void> = Promise.resolve();

/** Puts a question of permission to the person at the terminal, one after the other. What is no clear yes is a no; with Ctrl+C nothing is decided, and the call waits on. */
export function askPerson(chat: Chat, ask: PermissionAsk): Promise<void> {
  const isOpen = (): boolean => chat.state.asks.some(({ call }) => call === ask.call);
  const asked = last.then(async () => {
    if (!isOpen()) return;
    const rule = plainLine(ask.rule);
    const word = await typed(`${plainLine(ask.summary)}\nAllow it? [y]es, [a]lways in this session (${rule}), [N]o: `);
    if (word === null || !isOpen()) return;
    await chat.answer(ask.call, /^y(?:es)?$/.test(word) ? "allow" : /^a(?:lways)?$/.test(word) ? "always" : "deny");
  });
  // That one could not be answered is for its own caller; the next question is put all the same.
  last = asked.catch(() => {});
  return asked;
}

/** What was typed; empty at the end of the input; null after Ctrl+C, which then has its usual effect. */
function typed(question: string): Promise<string | null> {
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    const end = (word: string | null): void => {
      resolve(word);
      reader.close();
    };
    reader.question(question, (line) => end(line.trim().toLowerCase()));
    reader.once("close", () => resolve(""));
    // While it reads, the terminal sends no signal for it. Told at once: a real one would not keep the process alive until it is heard.
    reader.once("SIGINT", () => {
      end(null);
      if (!process.emit("SIGINT", "SIGINT")) process.kill(process.pid, "SIGINT");
    });
  });
}
