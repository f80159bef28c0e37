import { UI_MESSAGE_STREAM_HEADERS } from "ai";
import type { ChunkSource } from "./chunk-log.ts";

const encoder = new TextEncoder();

/**
 * The response that `useChat` reads. It takes chunks only when the connection has room for them. A reader that leaves
 * ends nothing but its own response.
 */
export function streamResponse(
  source: ChunkSource,
  { keepAliveMs, headers = {} }: { readonly keepAliveMs: number; readonly headers?: Readonly<Record<string, string>> },
): Response {
  let isDone = false;
  /** Still waited for after a keep-alive. */
  let waiting: ReturnType<ChunkSource["next"]> | null = null;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        if (isDone) return controller.close();
        waiting ??= source.next();
        const found = await orSilence(waiting, keepAliveMs);
        if (found === "silence") return controller.enqueue(encoder.encode(": keep-alive\n\n"));
        waiting = null;
        isDone = found === null;
        const events = (found ?? []).map(
          ({ id, chunk }) => `${id === null ? "" : `id: ${id}\n`}data: ${JSON.stringify(chunk)}\n\n`,
        );
        controller.enqueue(encoder.encode(isDone ? "data: [DONE]\n\n" : events.join("")));
      },
      cancel: () => source.cancel(),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: 200, headers: { ...UI_MESSAGE_STREAM_HEADERS, ...headers } });
}

async function orSilence<T>(value: Promise<T>, ms: number): Promise<T | "silence"> {
  const { promise, resolve } = Promise.withResolvers<"silence">();
  const timer = setTimeout(() => resolve("silence"), ms);
  try {
    return await Promise.race([value, promise]);
  } finally {
    clearTimeout(timer);
  }
}
