import { type Instance, render } from "ink";
import { defined } from "../defined.ts";
import type { Chat, Host, UnfinishedSession } from "../host/host.ts";
import { outlivePipe } from "../terminal/index.ts";
import { App } from "./app.tsx";
import { Controller } from "./controller.ts";
import { countExtraRows, doesReflow, rowsAbove, rowsIn, wipeRows } from "./drawing/reflow.ts";
import type { Picture } from "./drawing/renderer.ts";
import { watchHangup } from "./hangup.ts";

export interface ScreenOptions {
  readonly host: Host;
  /** What to start with: a chat, the offer to continue an unfinished one, or null for the list of sessions. */
  readonly begin: { readonly chat: Chat; readonly resumed: boolean } | { readonly offer: UnfinishedSession } | null;
  /** Creates a session, after such a question. */
  readonly startNew: () => Promise<Chat>;
  /** The model for a session that is chosen from the list. */
  readonly model?: string;
  /** Writes a conversation to a file and returns its path. */
  readonly exportTo: (id: string, file: string | undefined) => Promise<string>;
}

/** The state when the person left. */
export interface ScreenEnd {
  /** The chat that was on the screen. */
  readonly chat: Chat | null;
  /** The chats that were in mid-turn. */
  readonly cutOff: readonly Chat[];
}

/** Runs the screen until the person leaves. It neither opens nor closes the host. */
export async function runScreen({ host, begin, startNew, model, exportTo }: ScreenOptions): Promise<ScreenEnd> {
  // SIGHUP handles the loss of the terminal, not the first write that fails.
  outlivePipe();
  const unwatch = watchHangup();
  const size = { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
  const colour = (process.env["NO_COLOR"] ?? "") === "";
  const controller = new Controller({ host, colour, now: Date.now, startNew, exportTo, ...defined({ model }) }, size);
  if (begin === null) controller.pick();
  else if ("offer" in begin) controller.offer(begin.offer);
  else controller.show(begin.chat, begin.resumed);
  const interrupted = (): void => controller.key({ name: "interrupt" });
  process.on("SIGINT", interrupted);
  // Before the first picture, so that keys typed as soon as it appears are not echoed into it.
  process.stdin.setRawMode(true);
  const { renderer } = controller;
  // The renderer keeps the pace. What stands in the terminal is the picture that Ink has drawn, not one that waits.
  let drawn = renderer.picture;
  const onRender = (): void => {
    drawn = renderer.picture;
  };
  const options = { exitOnCtrlC: false, interactive: true, maxFps: 1000, onRender };
  const screen = render(<App controller={controller} />, options);
  const unfollow = followSize(screen, controller, () => drawn);
  try {
    // Ink exits by itself only if it could not draw: then it says why.
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
 * Handles a resize before Ink does. Ink would first draw the old picture into the new window, and rows that do not fit
 * would stay in the scrollback. So this erases what is drawn, and lays out the picture for the new size before Ink
 * draws again. Returns a function that stops it.
 */
function followSize(screen: Instance, controller: Controller, drawn: () => Picture): () => void {
  const { stdout } = process;
  const { renderer } = controller;
  let width = stdout.columns;
  const resized = (): void => {
    const { columns, rows } = stdout;
    const picture = drawn();
    // Ink erases as many rows as it drew; a narrower terminal has broken them into more.
    const more = columns < width && doesReflow(process.env) ? countExtraRows(picture, columns) : 0;
    const above = rowsAbove(picture) + more;
    // Including the row after it.
    const reachesTop = rowsIn(picture.live, columns) + 1 >= rows;
    if (reachesTop) stdout.write(wipeRows(above, rows));
    if (more > 0) stdout.write(`\u001b[${more}A`);
    width = columns;
    screen.clear();
    // Draw nothing in the first row: see liveRowsMax.
    if (reachesTop) stdout.write("\n");
    renderer.resize({ columns, rows });
    screen.rerender(<App controller={controller} />);
  };
  stdout.prependListener("resize", resized);
  // A timer can come before the signal that says so. A picture for the old size would then be broken into more rows
  // than can be erased. Node has no documented way to ask; without this one, it is as if nobody had asked.
  renderer.lookAtSize = () => (stdout as { _refreshSize?: () => void })._refreshSize?.();
  return () => {
    stdout.off("resize", resized);
    renderer.lookAtSize = () => undefined;
  };
}
