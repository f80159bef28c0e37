import type { CheckpointSaverTestInitializer } from "@langchain/langgraph-checkpoint-validation";
import * as vitest from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { type Server, startServer } from "../../../postgres/test/server/server.ts";
import { HoldfastSaver } from "../../src/langgraph/index.ts";

/** LangGraph's own tests for savers, which find their runner in global names. */

const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } = vitest;
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it });
const { deltaChannelHistoryTests, specTest } = await import("@langchain/langgraph-checkpoint-validation");

function initializer(
  name: string,
  addressIn: (folder: string) => string,
): CheckpointSaverTestInitializer<HoldfastSaver> {
  const folders = new Map<HoldfastSaver, Disposable>();
  return {
    checkpointerName: name,
    createCheckpointer: async () => {
      const folder = place();
      const saver = await HoldfastSaver.open(addressIn(folder.path), { durability: "process" });
      folders.set(saver, folder);
      return saver;
    },
    destroyCheckpointer: async (saver) => {
      await saver.close();
      folders.get(saver)?.[Symbol.dispose]();
    },
  };
}

let server: Server | undefined;
let schemas = 0;
beforeAll(async () => {
  // Nothing here cuts the power.
  server = await startServer(["fsync=off", "full_page_writes=off"]);
});
afterAll(() => server?.stop());

for (const saver of [
  initializer("HoldfastSaver in a folder", (folder) => folder),
  initializer("HoldfastSaver in SQLite", (folder) => `sqlite:${folder}/threads.db`),
  initializer("HoldfastSaver in PostgreSQL", () => `${server!.url}?schema=saver_${++schemas}`),
]) {
  specTest(saver);
  deltaChannelHistoryTests(saver);
}
