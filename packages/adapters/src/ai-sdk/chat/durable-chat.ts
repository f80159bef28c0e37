import { isHoldfastError, type Store } from "holdfast";
import { newestMessage, promptFrom } from "./browser-message.ts";
import { sessionIdOf } from "./chat-sessions.ts";
import { Chats, type Reply } from "./chats.ts";
import { streamResponse } from "./event-stream.ts";
import { listen } from "./listener.ts";
import { notFound, problemResponse, Refusal, refusalOf } from "./problem.ts";
import { bodyOf, chatId, type Route, routeOf } from "./read-request.ts";
import type { ChatSettings, DurableChat, DurableChatOptions } from "./surface.ts";

const BODY_BYTES_MAX = 20_000_000;
const KEEP_ALIVE_MS = 15_000;

/**
 * The handlers that a `useChat` page needs: chats that survive reloads, other devices, and the death of the server.
 * Open the store with `recordsToolStarts: true`, since every start is recorded. `settings` are those of `streamText`,
 * or a function that returns them for a chat.
 */
export function durableChat(
  store: Store,
  settings: ChatSettings | ((chat: { readonly id: string }) => ChatSettings | Promise<ChatSettings>),
  options: DurableChatOptions = {},
): DurableChat {
  const { path = "/api/chat", bodyBytesMax = BODY_BYTES_MAX, keepAliveMs = KEEP_ALIVE_MS } = options;
  const { onError = () => "An error occurred.", onFailure = console.error } = options;
  const settingsOf = async (id: string): Promise<ChatSettings> =>
    typeof settings === "function" ? settings({ id }) : settings;
  const chats = new Chats({ store, settingsOf, options, onError, onFailure });

  const allowed = async (request: Request, id: string | null): Promise<string> => {
    if (id === null) throw notFound();
    if (options.authorize && (await options.authorize({ id, request })) !== true) throw notFound();
    return id;
  };
  const stream = ({ source, isRepeated }: Reply): Response =>
    streamResponse(source, { keepAliveMs, headers: isRepeated ? { "x-holdfast-repeated": "true" } : {} });

  const post = async (request: Request, route: Route): Promise<Response> => {
    const body = await bodyOf(request, bodyBytesMax);
    const { id: named, trigger } = body;
    if (route.isStream) throw notFound();
    const id = await allowed(request, route.chat ?? chatId(named));
    if (trigger === "continue") {
      await chats.goOn(id);
      return new Response(null, { status: 202 });
    }
    const message = await newestMessage(body);
    if (message.role === "assistant") return stream(await chats.answers(id, message));
    const isRegenerated = trigger === "regenerate-message";
    return stream(await chats.prompt(id, await promptFrom(message, options.acceptsFileAt), { isRegenerated }));
  };
  const get = async (request: Request, route: Route): Promise<Response> => {
    const id = await allowed(request, route.chat);
    if (!route.isStream) return Response.json(await chats.state(id), { headers: { "cache-control": "no-store" } });
    const after = request.headers.get("last-event-id") ?? new URL(request.url).searchParams.get("after");
    const source = await chats.running(id, after);
    return source ? stream({ source, isRepeated: false }) : new Response(null, { status: 204 });
  };
  const remove = async (request: Request, route: Route): Promise<Response> => {
    await chats.stop(await allowed(request, route.chat));
    return new Response(null, { status: 204 });
  };

  const answering = (act: (request: Request, route: Route) => Promise<Response>) => async (request: Request) => {
    try {
      return await act(request, routeOf(request.url, path));
    } catch (error) {
      const refusal = refusalOf(error);
      // The browser can do nothing about it, and a person who reads the log can.
      if (isHoldfastError(error, "TOOL_MISSING")) onFailure(error);
      if (refusal) return problemResponse(refusal);
      onFailure(error);
      return problemResponse(new Refusal(500, "FAILED", onError(error)));
    }
  };
  const [POST, GET, DELETE] = [answering(post), answering(get), answering(remove)];
  const byMethod: Readonly<Record<string, typeof POST>> = { POST, GET, DELETE };
  const handle = async (request: Request): Promise<Response> => {
    const handler = Object.hasOwn(byMethod, request.method) ? byMethod[request.method] : undefined;
    if (handler) return handler(request);
    const refusal = new Refusal(405, "METHOD", "This address takes POST, GET and DELETE.");
    return problemResponse(refusal);
  };
  return {
    POST,
    GET,
    DELETE,
    handle,
    listener: (incoming, outgoing) => listen(handle, incoming, outgoing, onFailure),
    sessionId: sessionIdOf,
    state: (id) => chats.state(id),
    idle: () => chats.idle(),
    close: (given = {}) => chats.close(given),
  };
}
