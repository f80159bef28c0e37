import { DurableObject } from "cloudflare:workers";
import { openStore as openInObject } from "@holdfast/cloudflare";
import { openStore, type Store } from "holdfast";
import type { Env } from "./namespace.ts";

/** Opens a store at `/?address=…`, or the object's own, writes a prompt, searches for it, and says what happened. */
export class TestObject extends DurableObject {
  override async fetch(request: Request): Promise<Response> {
    const address = new URL(request.url).searchParams.get("address");
    const steps: string[] = [];
    const attempt = async (step: string, work: () => Promise<unknown>): Promise<void> => {
      steps.push(
        await work().then(
          () => step,
          (error) => `${step}: ${error.code ?? error.stack}`,
        ),
      );
    };
    let store: Store | undefined;
    await attempt("open", async () => {
      store = await (address === null ? openInObject(this.ctx) : openStore(address));
    });
    if (store) {
      const opened = store;
      await attempt("write", async () => {
        const session = await opened.create({ dialect: "anthropic" });
        await session.startTurn({ role: "user", content: "hello" });
      });
      await attempt("search", async () => {
        for await (const _ of opened.search("hello"));
      });
      await attempt("close", () => opened.close());
    }
    return Response.json(steps);
  }
}

export default {
  fetch: (request: Request, { OBJECTS }: Env): Promise<Response> => OBJECTS.get(OBJECTS.newUniqueId()).fetch(request),
};
