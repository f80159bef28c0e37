import { Static, Text, useApp, useCursor, useInput, usePaste, useStdout, useWindowSize } from "ink";
import { type ReactNode, useEffect, useSyncExternalStore } from "react";
import type { Controller } from "./controller.ts";
import { keysOf } from "./input/keys.ts";

/** From the first row to the last. The first one stays empty: see liveRowsMax. */
const ERASED = "\u001b[H\u001b[J\n";
/** How long a process that was told to stop may go on before it is plain that nobody stops it. */
const STOPPED_MS = 100;

/**
 * The controller's pictures on the terminal: what is finished goes above, once, and only the live part is redrawn.
 */
export function App({ controller }: { readonly controller: Controller }): ReactNode {
  const { renderer } = controller;
  const { written, live, cursor } = useSyncExternalStore(renderer.subscribe, () => renderer.picture);
  const { columns, rows } = useWindowSize();
  const { suspendTerminal } = useApp();
  // Always a terminal: see needTerminal.
  const stdout = useStdout().stdout as NodeJS.WriteStream;
  const { setCursorPosition } = useCursor();

  useEffect(() => renderer.resize({ columns, rows }), [renderer, columns, rows]);
  useInput((input, key) => {
    for (const one of keysOf(input, key)) {
      if (one.name === "suspend") void suspendTerminal(toShell);
      else if (one.name === "redraw") void suspendTerminal(() => void stdout.write(ERASED));
      else controller.key(one);
    }
  });
  usePaste((text) => controller.key({ name: "paste", text }));
  setCursorPosition(cursor ?? undefined);

  return (
    <>
      <Static items={written as string[]}>{(piece, i) => <Text key={i}>{piece}</Text>}</Static>
      <Text>{live}</Text>
    </>
  );
}

/** Ctrl+Z. The timer fires when the shell has continued the process, or soon, where no shell is there to stop it. */
async function toShell(): Promise<void> {
  process.kill(process.pid, "SIGTSTP");
  await new Promise((resolve) => setTimeout(resolve, STOPPED_MS));
}
