import { expect } from "vitest";
import type { z } from "zod";
import { problemsOf } from "../src/openapi/document.ts";
import type { Operation } from "../src/schemas/operation.ts";
import { type OperationId, operations } from "../src/schemas/operations.ts";
import { problem } from "../src/schemas/problem.ts";
import type { ServerStage } from "./server-stage.ts";

export interface ProbeInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Probed {
  readonly status: number;
  readonly body: never;
  readonly code: string;
  readonly headers: Headers;
}

/** Sends requests, validates every answer against the operation's schemas, and remembers which statuses were seen. */
export class Prober {
  readonly #seen = new Set<string>();

  async send(stage: ServerStage, id: OperationId, input: ProbeInput = {}): Promise<Probed> {
    const operation: Operation = operations[id];
    const { params = {}, query = {}, body, token, headers = {} } = input;
    const path = operation.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? "-"));
    const search = new URLSearchParams(query);
    const response = await stage.fetch(`${path}${search.size > 0 ? `?${search}` : ""}`, {
      method: operation.method.toUpperCase(),
      ...(token === undefined ? {} : { token }),
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    return this.check(id, response);
  }

  /** Remembers the status of an answer, and validates its body. */
  async check(id: OperationId, response: Response): Promise<Probed> {
    const operation: Operation = operations[id];
    const { status, headers } = response;
    this.#seen.add(`${id} ${status}`);
    if (status >= 400) {
      expect(headers.get("content-type")).toBe("application/problem+json");
      const found = (await response.json()) as z.infer<typeof problem>;
      expect(problem.parse(found)).toEqual(found);
      expect(found.status).toBe(status);
      return { status, headers, body: found as never, code: found.code };
    }
    const schema = operation.answers[status];
    expect(schema, `${id} answered ${status}`).not.toBe(undefined);
    if (schema === null) return { status, headers, body: undefined as never, code: "" };
    if (typeof schema === "string") {
      expect(headers.get("content-type")?.startsWith(schema)).toBe(true);
      if (schema === "text/event-stream") await response.body?.cancel();
      else await response.text();
      return { status, headers, body: undefined as never, code: "" };
    }
    const found = (await response.json()) as never;
    // A schema drops members that it does not know.
    expect(schema!.parse(found)).toEqual(found);
    return { status, headers, body: found, code: "" };
  }

  /** The documented statuses that no request has met, and those that it met without being documented. */
  compare(): { readonly missing: string[]; readonly undocumented: string[] } {
    const documented = Object.entries<Operation>(operations).flatMap(([id, operation]) =>
      [...Object.keys(operation.answers), ...problemsOf(operation)].map((status) => `${id} ${status}`),
    );
    return {
      missing: documented.filter((one) => !this.#seen.has(one)),
      undocumented: [...this.#seen].filter((one) => !documented.includes(one)),
    };
  }
}
