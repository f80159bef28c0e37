import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import OpenAI from "openai";
import { runAgent } from "../../../../examples/background.ts";
import { deadlyDisk } from "../deadly-disk.ts";

/** examples/background.ts, killed at one write to the journal, or at one call of the API. */

export interface Orders {
  readonly folder: string;
  readonly url: string;
  readonly kill: Kill;
}

export type Kill =
  | { readonly at: "write"; readonly nth: number; readonly written: "all" | "half" }
  /** Before the nth call is sent, or once its answer is here. */
  | { readonly at: "call" | "answer"; readonly nth: number }
  | null;

export function clientOf(url: string, kill: Kill = null): OpenAI {
  let calls = 0;
  const deadly: typeof fetch = async (...args) => {
    calls += 1;
    if (kill?.at === "call" && kill.nth === calls) process.kill(process.pid, "SIGKILL");
    const response = await fetch(...args);
    if (kill?.at === "answer" && kill.nth === calls) process.kill(process.pid, "SIGKILL");
    return response;
  };
  return new OpenAI({ baseURL: url, apiKey: "none", fetch: deadly });
}

if (import.meta.main) {
  const { folder, url, kill } = JSON.parse(process.argv[2]!) as Orders;
  const disk = deadlyDisk(kill?.at === "write" ? { killAfter: kill.nth, written: kill.written } : { killAfter: 0 });
  await using store = await openStoreWith((options) => openFolderStore(folder, { ...options, disk }), {
    app: "background",
    recordsToolStarts: true,
  });
  await runAgent(store, clientOf(url, kill));
  console.log("done");
}
