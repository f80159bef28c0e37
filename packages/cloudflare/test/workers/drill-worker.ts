import { DurableObject } from "cloudflare:workers";
import { openDurableObjectStore } from "@holdfast/cloudflare";
import type { JournalStore } from "holdfast/store";
import type { Env } from "./namespace.ts";
import { SESSION, textsIn, unitFrom } from "./units.ts";

/**
 * `/write`: opens the session, answers with a line that says what was found, and appends unit after unit, with a line
 * for each one that was acknowledged. `/abort`: the runtime ends the object. `/verify`: checks the whole journal.
 */
export class TestObject extends DurableObject {
  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/abort") this.ctx.abort("evicted");
    const store = await openDurableObjectStore(this.ctx);
    if (pathname === "/verify") return Response.json(await store.verify(SESSION));
    const encoder = new TextEncoder();
    let lines: AsyncGenerator<string> | undefined;
    return new Response(
      new ReadableStream({
        async pull(controller) {
          lines ??= write(store);
          const { value } = await lines.next();
          controller.enqueue(encoder.encode(`${value}\n`));
        },
      }),
    );
  }
}

async function* write(store: JournalStore): AsyncGenerator<string> {
  const journal = (await store.has(SESSION)) ? (await store.open(SESSION)).journal : await store.create(SESSION, []);
  const texts = await textsIn(store);
  yield JSON.stringify({ found: texts.length, isInOrder: texts.every((text, i) => text === unitFrom(i).at(0)!.text) });
  for (let next = texts.length; ; ) {
    const unit = unitFrom(next);
    // Now and then a new epoch: what was there before stays in the history.
    if (next % 7 === 6) await journal.epoch(() => [{ kind: "epoch", reason: "test" }]);
    await journal.append(unit);
    next += unit.length;
    yield String(next);
  }
}

export default {
  fetch: (request: Request, { OBJECTS }: Env): Promise<Response> =>
    OBJECTS.get(OBJECTS.idFromName("drill")).fetch(request),
};
