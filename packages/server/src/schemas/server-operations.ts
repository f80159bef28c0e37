import { z } from "zod";
import type { Operation } from "./operation.ts";
import { id } from "./operation-parts.ts";
import * as session from "./session.ts";

/** The server itself, shared sessions and damage. */
export const serverOperations = {
  getServer: {
    method: "get",
    path: "/server",
    tag: "server",
    summary: "What this server is",
    access: "read",
    answers: {
      200: z
        .object({
          version: z.string(),
          store: z.string().nullable().describe("Null for a read-only token."),
          warnings: z.array(z.string()),
          stopping: z.boolean().describe("It accepts no new turns."),
          access: z.enum(["owner", "read"]),
          session: session.sessionId.nullable().describe("The one session that a read-only token is for."),
          models: z.object({ default: z.string() }).nullable(),
          cwd: z.string().nullable().describe("The server's folder, a default for new sessions."),
        })
        .meta({ id: "Server" }),
    },
    problems: [],
  },
  getOpenApi: {
    method: "get",
    path: "/openapi.json",
    tag: "server",
    summary: "This document",
    access: "open",
    answers: { 200: z.record(z.string(), z.unknown()) },
    problems: [],
  },
  proveServer: {
    method: "get",
    path: "/auth/proof",
    tag: "server",
    summary: "Have the server prove itself before you send it a token",
    description:
      "For clients over plain HTTP, where anybody may listen on the port. With D, the SHA-256 digest of the token, and N, the nonce, `client` is the HMAC-SHA-256 of `holdfast client 1\\nN` with the key D, in base64url. The header `Holdfast-Proof` of the answer is that of `holdfast server 1\\nN\\nA`, where A is the `Host` header. Send the token over the same connection.",
    access: "open",
    query: z.strictObject({
      nonce: z
        .string()
        .regex(/^[\w-]{22,100}$/)
        .describe("Random, and new for each connection."),
      client: z.string().min(1).max(100),
    }),
    answers: { 204: null },
    problems: [401],
  },
  exchangeToken: {
    method: "post",
    path: "/auth/cookie",
    tag: "server",
    summary: "Exchange a token for a cookie",
    description:
      "For the web page, which finds the token in the fragment of its address, sends it here, and removes it from the address. The cookie is HttpOnly and SameSite=Strict.",
    access: "open",
    body: z.strictObject({ token: z.string().min(1).max(500) }),
    answers: { 204: null },
    problems: [401],
  },
  forgetCookie: {
    method: "delete",
    path: "/auth/cookie",
    tag: "server",
    summary: "Forget the cookie",
    access: "open",
    answers: { 204: null },
    problems: [],
  },
  getDamage: {
    method: "get",
    path: "/sessions/:id/damage",
    tag: "damage",
    summary: "Check the whole journal, byte by byte",
    access: "owner",
    params: id,
    answers: { 200: session.damage },
    problems: [404],
  },
  healSession: {
    method: "post",
    path: "/sessions/:id/heal",
    tag: "damage",
    summary: "Repair what a crash left behind",
    access: "owner",
    params: id,
    answers: { 200: session.recovery },
    problems: [404, 409],
  },
  listAllShares: {
    method: "get",
    path: "/shares",
    tag: "sharing",
    summary: "The read-only tokens of all sessions",
    access: "owner",
    answers: { 200: z.object({ shares: z.array(session.share) }) },
    problems: [],
  },
  listShares: {
    method: "get",
    path: "/sessions/:id/shares",
    tag: "sharing",
    summary: "The read-only tokens of a session",
    access: "owner",
    params: id,
    answers: { 200: z.object({ shares: z.array(session.share) }) },
    problems: [404],
  },
  createShare: {
    method: "post",
    path: "/sessions/:id/shares",
    tag: "sharing",
    summary: "Make a read-only token for a session",
    access: "owner",
    params: id,
    body: z.strictObject({
      expiresAt: z.iso.datetime().optional().describe("It opens nothing from then on, and its event streams end."),
      redact: z.boolean().optional().describe("Replace credentials in everything that it shows, as an export can."),
    }),
    answers: { 201: session.share },
    problems: [404],
  },
  removeShare: {
    method: "delete",
    path: "/sessions/:id/shares/:share",
    tag: "sharing",
    summary: "Make a read-only token invalid",
    description: "Also ends the event streams that were opened with it.",
    access: "owner",
    params: z.strictObject({ id: session.sessionId, share: z.string().min(1).max(100) }),
    answers: { 204: null },
    problems: [404],
  },
} as const satisfies Record<string, Operation>;
