import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { HoldfastSessionStore, Hooks } from "../../../src/claude-agent/index.ts";
import { ClaudeCode } from "../claude-code.ts";

/**
 * Stands in for the SDK where its 350 MB are not installed: `query` acts in the order in which Claude Code was seen to
 * act. `npm run claude-agent` runs the same programs with the real one.
 */

interface Options {
  readonly continue?: boolean;
  readonly allowedTools?: string[];
  readonly sessionStore: HoldfastSessionStore;
  readonly hooks: Hooks;
}

type Message =
  | { readonly type: "system"; readonly subtype: "init"; readonly session_id: string }
  | { readonly type: "result"; readonly subtype: "success"; readonly result: string }
  | { readonly type: "result"; readonly subtype: "error_during_execution" };

async function sendMail(): Promise<string> {
  console.log("tool: send_mail");
  console.log(`  the mail is on its way (kill -9 ${process.pid} now)`);
  await sleep(1000);
  return "Sent.";
}

export async function* query({ prompt, options }: { prompt: string; options: Options }): AsyncGenerator<Message> {
  const { sessionStore, hooks } = options;
  const projectKey = process.cwd().replaceAll(/[^a-zA-Z0-9]/g, "-");
  const [last] = options.continue ? await sessionStore.listSessions(projectKey) : [];
  const key = { projectKey, sessionId: last?.sessionId ?? randomUUID() };
  yield { type: "system", subtype: "init", session_id: key.sessionId };
  const claude = await ClaudeCode.start({ key, mirror: sessionStore, hooks, act: sendMail });
  const told = (await claude.prompt(prompt)) ?? "";
  const isInDoubt = told.includes("send_mail");
  if (!isInDoubt) await claude.call({ id: `toolu_${randomUUID()}`, name: "send_mail", input: { to: "all" } });
  const result = isInDoubt ? "I do not know whether send_mail took effect: please check." : "The mail is sent.";
  await claude.answer(result);
  yield { type: "result", subtype: "success", result };
}
