import { Static, Text, useApp, useCursor, useInput, usePaste, useStdout, useWindowSize } from "ink";
import { type ReactNode, useEffect, useSyncExternalStore } from "react";
import type { Controller } from "./controller.ts";
import { keysOf } from "./input/keys.ts";
import { editOutside } from "./input/outside-editor.ts";

/** Erases the whole screen. The first row stays empty: see liveRowsMax. */
const ERASED = "\u001b[H\u001b[J\n";
/** If the process is still running this long after SIGTSTP, nothing has stopped it. */
const STOPPED_MS = 100;

/** Draws the controller's pictures: finished rows are written once, above; only the live part is redrawn. */
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
      else if (one.name === "editOutside") void suspendTerminal(() => controller.editText(editOutside));
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

/**
 * Ctrl+Z, as the terminal itself does it: the whole process group stops. If only this process stopped, the one that
 * started it (npx, a script) would go on waiting, and the shell would never get the terminal. The agent's commands have
 * groups of their own. The timer fires once the shell has continued the process, or soon, if nothing can stop it.
 */
async function toShell(): Promise<void> {
  if (process.platform === "win32") return;
  process.kill(0, "SIGTSTP");
  await new Promise((resolve) => setTimeout(resolve, STOPPED_MS));
}
