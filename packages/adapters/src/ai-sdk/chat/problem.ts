import { isHoldfastError } from "holdfast";

/** A request that is refused, with the text that `useChat` shows as its error. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = "Refusal";
    this.status = status;
    this.code = code;
  }
}

export function notFound(): Refusal {
  return new Refusal(404, "NOT_FOUND", "There is no such chat.");
}

export function invalid(why: string): Refusal {
  return new Refusal(400, "INVALID", `The request was refused: ${why}. Nothing was recorded.`);
}

export function alreadyAnswered(what: string): Refusal {
  return new Refusal(
    409,
    "ALREADY_ANSWERED",
    `${what} was already answered differently, on another page or before a reload. The first answer counts. Load the chat again.`,
  );
}

export function answerStays(): Refusal {
  return new Refusal(
    409,
    "ANSWERED",
    "This answer is complete, and it stays in the conversation. Send a new message to get another one.",
  );
}

export function waiting(): Refusal {
  return new Refusal(409, "WAITING", "The chat waits for an answer to a tool call. Answer it to go on.");
}

export function busy(consequence: string): Refusal {
  return new Refusal(409, "BUSY", `Another server is answering in this chat, ${consequence}. Try again.`);
}

export function stopping(): Refusal {
  return new Refusal(503, "STOPPING", "The server is being replaced. Nothing was recorded. Try again.");
}

/** The refusal that an error amounts to; null for a fault of the server. */
export function refusalOf(error: unknown): Refusal | null {
  if (error instanceof Refusal) return error;
  if (isHoldfastError(error, "SESSION_BUSY"))
    return new Refusal(
      409,
      "BUSY",
      "Another server is answering in this chat. The message was not recorded. Send it again in a moment.",
    );
  if (isHoldfastError(error, "KEY_TAKEN", "MESSAGE_ID_TAKEN"))
    return new Refusal(
      409,
      "MESSAGE_ID_TAKEN",
      "A message with this id and another text was already sent. Nothing was recorded. Send the text as a new message.",
    );
  if (isHoldfastError(error, "MESSAGE_UNFIT", "MESSAGE_NOT_JSON", "RECORD_TOO_LARGE", "RECORD_INVALID"))
    return invalid("the message cannot be recorded");
  if (isHoldfastError(error, "STORE_FULL"))
    return new Refusal(507, "STORE_FULL", "The server has no space left. The message was not recorded.");
  if (isHoldfastError(error, "TOOL_MISSING"))
    return new Refusal(503, "TOOL_MISSING", "The server lacks a tool that this answer needs. Try again later.");
  return null;
}

/** As text, because `useChat` shows the body as it is; the code is in a header. */
export function problemResponse({ status, code, message }: Refusal): Response {
  return new Response(message, {
    status,
    headers: {
      "content-type": "text/plain; charset=utf-8",
      "x-holdfast-code": code,
      ...(code === "BUSY" || code === "STOPPING" ? { "retry-after": "1" } : {}),
    },
  });
}
