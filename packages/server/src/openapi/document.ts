import { z } from "zod";
import { events } from "../schemas/events.ts";
import type { Operation } from "../schemas/operation.ts";
import { operations } from "../schemas/operations.ts";
import { PROBLEMS, type ProblemStatus, problem } from "../schemas/problem.ts";

type Json = { [member: string]: unknown };

const OTHERWISE =
  "Anything else: the store is full (507), cannot do this (501) or failed, or the server failed unexpectedly (500).";

/** The OpenAPI document, from the schemas that validate the requests. */
export function openApiDocument(version: string): Json {
  const components: Json = {};
  const paths: Json = {};
  for (const [id, operation] of Object.entries<Operation>(operations)) {
    const path = operation.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...(paths[path] as Json | undefined), [operation.method]: describe(id, operation, components) };
  }
  for (const schema of Object.values(events)) void schemaOf(schema, "output", components);
  return {
    openapi: "3.1.0",
    info: {
      title: "Holdfast server",
      version,
      description:
        "Sessions over HTTP. A turn outlives its clients; every client can follow a session from any point. Errors are problem documents (RFC 9457).",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "http://127.0.0.1:4040" }],
    security: [{ token: [] }, { cookie: [] }],
    paths,
    components: {
      responses: problemResponses(components),
      schemas: Object.fromEntries(Object.entries(components).sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "The token that `holdfast serve` made at first start." },
        cookie: {
          type: "apiKey",
          in: "cookie",
          name: "holdfast-4040",
          description: "For the web page. The name ends with the server's port.",
        },
      },
    },
  };
}

function problemResponses(components: Json): Json {
  const content = { "application/problem+json": { schema: schemaOf(problem, "output", components) } };
  const each = Object.entries(PROBLEMS).map(([status, description]) => [`Problem${status}`, { description, content }]);
  return { ...Object.fromEntries(each), Problem: { description: OTHERWISE, content } };
}

function describe(id: string, operation: Operation, components: Json): Json {
  const { tag, summary, description, access, body, answers } = operation;
  const parameters = [...parametersOf(operation.params, "path"), ...parametersOf(operation.query, "query")];
  if (id === "followEvents")
    parameters.push({ name: "Last-Event-ID", in: "header", required: false, schema: { type: "string" } });
  const responses: Json = {};
  for (const [status, answer] of Object.entries(answers)) responses[status] = answerOf(answer, components);
  for (const status of problemsOf(operation)) responses[status] = { $ref: `#/components/responses/Problem${status}` };
  responses["default"] = { $ref: "#/components/responses/Problem" };
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    ...(access === "open" ? { security: [] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body
      ? {
          requestBody: {
            required: true,
            content: { "application/json": { schema: schemaOf(body, "input", components) } },
          },
        }
      : {}),
    responses,
  };
}

/** Every status of a problem that this operation is known to answer with. */
export function problemsOf({ access, params, query, body, problems }: Operation): ProblemStatus[] {
  const all: ProblemStatus[] = [...problems, 403, 421];
  if (access !== "open") all.push(401);
  if (params || query || body) all.push(400);
  if (body) all.push(413, 415);
  return [...new Set(all)].sort((a, b) => a - b);
}

function answerOf(answer: z.ZodType | string | null, components: Json): Json {
  if (answer === null) return { description: "Done." };
  const type = typeof answer === "string" ? answer : "application/json";
  const schema = typeof answer === "string" ? { type: "string" } : schemaOf(answer, "output", components);
  return { description: "Done.", content: { [type]: { schema } } };
}

function parametersOf(schema: z.ZodObject | undefined, place: "path" | "query"): Json[] {
  if (!schema) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = property as Json;
    return {
      name,
      in: place,
      required: place === "path" || required.includes(name),
      ...(description ? { description } : {}),
      schema: rest,
    };
  });
}

/** The schema; those with a name go to the components, and are referred to. */
function schemaOf(schema: z.ZodType, io: "input" | "output", components: Json): Json {
  const {
    $schema: _version,
    $defs = {},
    ...own
  } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json & {
    $defs?: Json;
  };
  for (const [name, one] of Object.entries($defs)) components[name] ??= relocate(withoutId(one as Json));
  const name = schema.meta()?.id;
  const moved = relocate(withoutId(own)) as Json;
  if (typeof name !== "string") return moved;
  components[name] ??= moved;
  return { $ref: `#/components/schemas/${name}` };
}

function withoutId(schema: Json): Json {
  const { id: _id, $id: _address, ...rest } = schema;
  return rest;
}

function relocate(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(relocate);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      name === "$ref" && typeof member === "string"
        ? [name, member.replace("#/$defs/", "#/components/schemas/")]
        : [name, relocate(member)],
    ),
  );
}
