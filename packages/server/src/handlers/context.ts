import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { AllowedNames } from "../access/check-request.ts";
import type { Caller, Credentials } from "../access/credentials.ts";
import type { Hosting } from "../hosting/hosting.ts";
import type { Histories } from "../reading/histories.ts";
import type { HttpRecordings } from "../recordings/http-recordings.ts";
import type { Input } from "../schemas/operation.ts";
import type { OperationId, Operations } from "../schemas/operations.ts";
import type { Streams } from "./streams.ts";

export interface HandlerContext {
  readonly hosting: Hosting;
  readonly histories: Histories;
  readonly recordings: HttpRecordings;
  readonly credentials: Credentials;
  readonly streams: Streams;
  readonly version: string;
  readonly facts: { readonly model: string; readonly cwd: string };
  readonly cookieName: () => string;
  readonly allowed: AllowedNames;
}

export interface RequestContext extends HandlerContext {
  readonly caller: Caller | null;
  readonly c: Context<{ Bindings: HttpBindings }>;
}

/** `response`: sent as it is. */
export type Answer = { readonly status: number; readonly body?: unknown } | { readonly response: Response };

export type Handlers<Ids extends OperationId = OperationId> = {
  readonly [Id in Ids]: (input: Input<Operations[Id]>, context: RequestContext) => Promise<Answer> | Answer;
};
