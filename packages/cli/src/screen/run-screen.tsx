import { type Instance, render } from "ink";
import { defined } from "../defined.ts";
import type { Chat, Host } from "../host/host.ts";
import { outlivePipe } from "../terminal/index.ts";
import { App } from "./app.tsx";
import { Controller } from "./controller.ts";
import { countExtraRows, doesReflow, rowsIn, wipeRows } from "./drawing/reflow.ts";
import { watchHangup } from "./hangup.ts";

export interface ScreenOptions {
  readonly host: Host;
  /** What to begin with; null: the list of sessions. */
  readonly begin: { readonly chat: Chat; readonly resumed: boolean } | null;
  /** For the session that is taken from the list. */
  readonly model?: string;
  /** Writes a conversation to a file, and answers its path. */
  readonly exportTo: (id: string, file: string | undefined) => Promise<string>;
}

/** What a person has left. */
export interface Left {
  /** The chat that was on the screen. */
  readonly chat: Chat | null;
  /** Those that were in the middle of a turn. */
  readonly cutOff: readonly Chat[];
}

/** The screen, until the person leaves. It neither opens nor closes the host. */
export async function runScreen({ host, begin, model, exportTo }: ScreenOptions): Promise<Left> {
  // What happens when the terminal is lost is said by SIGHUP, and not by the first write that fails.
  outlivePipe();
  const unwatch = watchHangup();
  const size = { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  const colour = (process.env["NO_COLOR"] ?? "") === "";
  const controller = new Controller({ host, colour, now: Date.now, exportTo, ...defined({ model }) }, size);
  if (begin === null) controller.pick();
  else controller.show(begin.chat, begin.resumed);
  const interrupted = (): void => controller.key({ name: "interrupt" });
  process.on("SIGINT", interrupted);
  // Before the first picture: what is typed as soon as it is seen must not be echoed into it.
  process.stdin.setRawMode(true);
  const screen = render(<App controller={controller} />, { exitOnCtrlC: false, interactive: true });
  const unfollow = followSize(screen, controller);
  try {
    // Ink leaves by itself only if it could not draw: then it says why.
    const chat = await Promise.race([controller.left, screen.waitUntilExit().then(() => null)]);
    return { chat, cutOff: controller.cutOff };
  } finally {
    process.off("SIGINT", interrupted);
    unfollow();
    screen.unmount();
    await screen.waitUntilExit();
    process.stdin.setRawMode(false);
    unwatch();
  }
}

/**
 * Before Ink hears of another size: it would draw the old picture into the new window first, and rows of it that do not
 * fit would stay in the scrollback. So what is drawn is taken back, and the picture for that size is there before Ink
 * draws again.
 * Returns the way to stop that.
 */
function followSize(screen: Instance, controller: Controller): () => void {
  const { stdout } = process;
  const { renderer } = controller;
  let width = stdout.columns;
  const resized = (): void => {
    const { columns, rows } = stdout;
    // Ink takes as many rows back as it has drawn; a terminal that is narrower has broken them into more.
    const more = columns < width && doesReflow(process.env) ? countExtraRows(renderer.picture, columns) : 0;
    const above = (renderer.picture.cursor?.y ?? 0) + more;
    // With the row behind it.
    const reachesTop = rowsIn(renderer.picture.live, columns) + 1 >= rows;
    if (reachesTop) stdout.write(wipeRows(above, rows));
    if (more > 0) stdout.write(`\u001b[${more}A`);
    width = columns;
    screen.clear();
    // Nothing is to be drawn in the first row: see liveRowsMax.
    if (reachesTop) stdout.write("\n");
    renderer.resize({ columns, rows });
    screen.rerender(<App controller={controller} />);
  };
  stdout.prependListener("resize", resized);
  return () => void stdout.off("resize", resized);
}
