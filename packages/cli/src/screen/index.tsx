import { render } from "ink";
import type { Chat, Host } from "../host/host.ts";
import { outlivePipe } from "../terminal/index.ts";
import { App } from "./app.tsx";
import { Controller } from "./controller.ts";
import { watchHangup } from "./hangup.ts";

export interface ScreenOptions {
  readonly host: Host;
  /** What to begin with; null: the list of sessions. */
  readonly begin: { readonly chat: Chat; readonly resumed: boolean } | null;
  /** Writes a conversation to a file, and answers its path. */
  readonly exportTo: (id: string, file: string | undefined) => Promise<string>;
}

/** The screen, until the person leaves. Answers the chat that was on it. It neither opens nor closes the host. */
export async function runScreen({ host, begin, exportTo }: ScreenOptions): Promise<Chat | null> {
  // What happens when the terminal is lost is said by SIGHUP, and not by the first write that fails.
  outlivePipe();
  const unwatch = watchHangup();
  const size = { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  const colour = (process.env["NO_COLOR"] ?? "") === "";
  const controller = new Controller({ host, colour, now: Date.now, exportTo }, size);
  if (begin === null) controller.pick();
  else controller.show(begin.chat, begin.resumed);
  const interrupted = (): void => controller.key({ name: "interrupt" });
  process.on("SIGINT", interrupted);
  // Before the first picture: what is typed as soon as it is seen must not be echoed into it.
  process.stdin.setRawMode(true);
  const screen = render(<App controller={controller} />, { exitOnCtrlC: false, interactive: true });
  try {
    // Ink leaves by itself only if it could not draw: then it says why.
    return await Promise.race([controller.left, screen.waitUntilExit().then(() => null)]);
  } finally {
    process.off("SIGINT", interrupted);
    screen.unmount();
    await screen.waitUntilExit();
    process.stdin.setRawMode(false);
    unwatch();
  }
}
