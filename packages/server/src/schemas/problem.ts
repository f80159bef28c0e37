import { z } from "zod";

/** Every status that an operation's problems may have, in words. */
export const PROBLEMS = {
  400: "The request is not valid.",
  401: "The token is missing or not one of this server's.",
  403: "A read-only token does not allow this, or the request comes from a foreign web page.",
  404: "There is no such session, message or queued prompt.",
  409: "The session is in use elsewhere, or its turn does not allow this now.",
  410: "The cursor is no longer in the journal.",
  413: "The body is too large.",
  415: "The body is not JSON.",
  421: "The server does not answer to the name in the Host header.",
  422: "The request is understood and cannot be carried out: the model, the folder or the session's format.",
  503: "The server is stopping, or has too many open streams.",
  507: "The store is full. Nothing of the request was recorded.",
} as const;

export type ProblemStatus = keyof typeof PROBLEMS;

/** RFC 9457. */
export const problem = z
  .object({
    type: z.string().describe("`urn:holdfast:error:` and the code."),
    title: z.string().describe("The code in words."),
    status: z.int(),
    code: z.string().describe("One of docs/ERRORS.md. Programs decide by this member."),
    detail: z.string().describe("What happened, whether data is safe, and what to do next."),
    facts: z.record(z.string(), z.unknown()).optional().describe("Small values for programs."),
  })
  .meta({ id: "Problem", description: "An error, as RFC 9457 describes it (`application/problem+json`)." });

export type Problem = z.infer<typeof problem>;
