import type { EditorTerminal } from "@holdfast/server/internal/contract";
import { expect, test, vi } from "vitest";
import { runInEditor } from "../../../../src/tools/shell/editor-terminal.ts";

// No test waits for an editor that never answers.
vi.mock("node:timers/promises", () => ({
  setTimeout: (_ms: number, value: unknown) => new Promise((resolve) => setImmediate(() => resolve(value))),
}));

const never = <T>(): Promise<T> => new Promise<T>(() => undefined);

test.each(["kill", "output"] as const)(
  "an editor that does not answer to %s does not keep a turn from being stopped",
  async (silent) => {
    const terminal: EditorTerminal = {
      ...{ ended: never(), kill: async () => undefined, release: async () => undefined },
      output: async () => ({ text: "so far", isCut: false }),
      ...(silent === "kill" ? { kill: () => never<void>() } : { output: () => never<never>() }),
    };
    const stop = new AbortController();
    const running = runInEditor(
      { cwd: "/work", env: {}, process: async () => undefined },
      { create: async () => terminal },
      "c1",
      { command: "make", seconds: 1000, signal: stop.signal },
    );
    setImmediate(() => stop.abort());
    await expect(running).rejects.toThrow(/may still be running|may have taken effect|outcome/i);
  },
);
