import { registerHooks } from "node:module";

/**
 * Loaded before examples/functions.ts (`--import`): at each of these places in the program, it asks a server of the
 * test whether it may go on. What is given the turn's signal goes on, in any case, when the turn is to be handed over.
 */
const PLACES: readonly (readonly [found: string, held: string])[] = [
  ["const { messages, draft }", 'await hold("before the request", turn.handOver); const { messages, draft }'],
  [
    "(text) => draft.push({ text })",
    'async (text) => { await draft.push({ text }); await hold("while it streams", turn.handOver); }',
  ],
  ["await run(turn, call);", '{ await run(turn, call); await hold("between tools", turn.handOver); }'],
  [
    "await sleep(200);",
    'await hold("in a tool", turn.handOver); if (turn.handOver.aborted) await hold("at the hand-over");',
  ],
  ["const due = ", 'await hold("after the hand-over"); const due = '],
];

const url = process.env["HOLD_URL"]!;

Object.assign(globalThis, {
  hold: async (place: string, leaving?: AbortSignal): Promise<void> => {
    const init = { method: "POST", body: place, ...(leaving ? { signal: leaving } : {}) };
    await fetch(url, init).catch((error: unknown) => {
      if (!leaving?.aborted) throw error;
    });
  },
});

registerHooks({
  load: (file, context, next) => {
    const loaded = next(file, context);
    if (!file.endsWith("/examples/functions.ts")) return loaded;
    let source = new TextDecoder().decode(loaded.source as Uint8Array);
    for (const [found, held] of PLACES) {
      const parts = source.split(found);
      if (parts.length !== 2) throw new Error(`the example has ${parts.length - 1} times: ${found}`);
      source = parts.join(held);
    }
    return { ...loaded, source };
  },
});
