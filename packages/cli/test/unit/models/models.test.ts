import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { generateText, streamText } from "ai";
import { describe, expect, onTestFinished, test } from "vitest";
import { CommandError, EXIT } from "../../../src/exit.ts";
import { explainModelError } from "../../../src/models/explain.ts";
import { resolveModel } from "../../../src/models/resolve.ts";
import { windowTokensOf } from "../../../src/models/windows.ts";

const KEYS = {
  ANTHROPIC_API_KEY: "sk-ant-secret-0123456789",
  OPENAI_API_KEY: "sk-secret-0123456789",
  GEMINI_API_KEY: "AIzaSecret0123456789",
};

/** As tests, and people behind a proxy, point the providers elsewhere. */
function addresses(url: string): Record<string, string> {
  return { ANTHROPIC_BASE_URL: url, OPENAI_BASE_URL: url, GOOGLE_BASE_URL: url, COMPATIBLE_BASE_URL: url };
}

/** Answers every request in the same way; tells what was asked. */
async function server(answer: (response: ServerResponse) => void): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const http = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers["authorization"] ?? ""}`.trim());
    answer(response);
  });
  await new Promise<void>((resolve) => {
    http.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`, asked };
}

function json(status: number, body: unknown, headers: Record<string, string> = {}) {
  return (response: ServerResponse): void => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}

async function refusal(name: string, options: Parameters<typeof resolveModel>[1]): Promise<CommandError> {
  const error: unknown = await resolveModel(name, options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(CommandError);
  return error as CommandError;
}

/** What a run fails with: a part of its stream, or what the stream itself throws. */
async function failing(options: Parameters<typeof streamText>[0]): Promise<unknown> {
  try {
    const run = streamText({ ...options, onError: () => {} });
    for await (const part of run.stream) if (part.type === "error") return part.error;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

describe("resolveModel", () => {
  test("offline needs nothing", async () => {
    const { name, provider, windowTokens, model } = await resolveModel("offline", { env: {} });
    expect({ name, provider, windowTokens }).toEqual({
      name: "offline/offline",
      provider: "offline",
      windowTokens: 32_000,
    });
    expect(model.specificationVersion).toBe("v4");
    expect((await resolveModel("offline/offline", { env: {}, windowTokens: 500 })).windowTokens).toBe(500);
  });

  test("each provider's model is of the specification that the agent is written for", async () => {
    for (const name of ["anthropic/claude-x", "openai/gpt-x", "google/gemini-x", "compatible/org/model"]) {
      const resolved = await resolveModel(name, { env: KEYS, baseUrl: "http://127.0.0.1:9/v1" });
      expect(resolved).toMatchObject({ name, provider: name.split("/")[0] });
      expect(resolved.model.specificationVersion).toBe("v4");
      expect(resolved.model.modelId).toBe(name.slice(name.indexOf("/") + 1));
    }
  });

  test("what OpenAI's servers keep is not relied on", async () => {
    const { providerOptions } = await resolveModel("openai/gpt-x", { env: KEYS });
    expect(providerOptions).toMatchObject({ openai: { store: false } });
  });

  test("mistakes are told in words, with what to do", async () => {
    const unknown = await refusal("acme/llm", { env: {} });
    expect(unknown).toMatchObject({ exitCode: EXIT.usage, code: "MODEL_UNKNOWN" });
    for (const known of ["anthropic/", "openai/", "google/", "compatible/", "offline"])
      expect(unknown.message).toContain(known);
    expect(await refusal("constructor/x", { env: {} })).toMatchObject({ code: "MODEL_UNKNOWN" });
    expect(await refusal("openai", { env: KEYS })).toMatchObject({ exitCode: EXIT.usage, code: "MODEL_UNKNOWN" });
    expect(await refusal("offline/large", { env: {} })).toMatchObject({ code: "MODEL_UNKNOWN" });
    const key = await refusal("anthropic/claude-x", { env: { ANTHROPIC_API_KEY: "" } });
    expect(key).toMatchObject({ exitCode: EXIT.model, code: "MODEL_KEY" });
    expect(key.message).toContain("ANTHROPIC_API_KEY");
    expect(key.message).toContain("--model offline");
    const address = await refusal("compatible/qwen3", { env: {} });
    expect(address).toMatchObject({ exitCode: EXIT.usage, code: "MODEL_BASE_URL" });
    expect(address.message).toContain("--base-url");
    expect(await refusal("compatible/x", { env: {}, baseUrl: "localhost:11434" })).toMatchObject({
      code: "MODEL_BASE_URL",
    });
  });

  test("the address is taken from the flag, else from the environment; a local server needs no key", async () => {
    const answer = {
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "m",
      choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
    };
    const { url, asked } = await server(json(200, answer));
    for (const options of [{ env: {}, baseUrl: `${url}/v1` }, { env: { COMPATIBLE_BASE_URL: `${url}/v1` } }]) {
      const { model } = await resolveModel("compatible/m", options);
      expect((await generateText({ model, prompt: "hello" })).text).toBe("hi");
    }
    expect(asked).toEqual(["POST /v1/chat/completions", "POST /v1/chat/completions"]);
  });

  test("a password in the address goes into a header, and into no error", async () => {
    const { url, asked } = await server(json(404, { error: { message: "no such model" } }));
    const baseUrl = `${url.replace("//", "//me:S3%43RET@")}/v1`;
    const { model } = await resolveModel("compatible/m", { env: {}, baseUrl });
    const error = await failing({ model, prompt: "hello", maxRetries: 0 });
    const basic = Buffer.from("me:S3CRET").toString("base64");
    expect(asked).toEqual([`POST /v1/chat/completions Basic ${basic}`]);
    expect(explainModelError(error, "compatible/m").message).not.toContain("S3");
    expect(String((error as { url?: string }).url)).toBe(`${url}/v1/chat/completions`);
    const both = await refusal("compatible/m", { env: { COMPATIBLE_API_KEY: "k" }, baseUrl });
    const none = await refusal("compatible/m", { env: {}, baseUrl: "ftp://me:S3CRET@host" });
    const theirs = await refusal("openai/x", { env: { ...KEYS, OPENAI_BASE_URL: baseUrl } });
    for (const refused of [both, none, theirs]) {
      expect(refused.code).toBe("MODEL_BASE_URL");
      expect(refused.message).not.toMatch(/S3|RET/u);
    }
  });

  test("the key of a provider does not go to the address of a server of one's own", async () => {
    const own = await server(json(500, {}));
    const theirs = await server(json(500, {}));
    for (const name of ["anthropic/x", "openai/x", "google/x"]) {
      const { model } = await resolveModel(name, { env: { ...KEYS, ...addresses(theirs.url) }, baseUrl: own.url });
      await failing({ model, prompt: "hello", maxRetries: 0 });
    }
    expect(theirs.asked).toHaveLength(3);
    expect(own.asked).toEqual([]);
  });

  test.each([
    ["anthropic/claude-sonnet-4-5", 200_000],
    ["anthropic/claude-of-tomorrow", 200_000],
    ["openai/gpt-5-mini", 272_000],
    ["openai/gpt-5.1-chat-latest", 128_000],
    ["openai/gpt-4.1", 1_000_000],
    ["openai/gpt-4o-mini", 128_000],
    ["openai/gpt-4", 8_000],
    ["openai/o4-mini", 200_000],
    ["openai/something", 128_000],
    ["google/gemini-3-flash-preview", 1_000_000],
    ["google/gemma-3-27b-it", 32_000],
    ["compatible/anything", 32_000],
    ["offline/offline", 32_000],
  ])("%s may be sent %i tokens", (name, tokens) => expect(windowTokensOf(name)).toBe(tokens));
});

describe("explainModelError: what the provider packages throw", () => {
  const NAMES = ["anthropic/claude-x", "openai/gpt-x", "google/gemini-x", "compatible/m"];

  async function failureOf(name: string, baseUrl: string, maxRetries = 0): Promise<unknown> {
    const { model } = await resolveModel(name, { env: { ...KEYS, ...addresses(baseUrl) } });
    return failing({ model, prompt: "hello", maxRetries });
  }

  const body = (message: string) => ({ type: "error", error: { type: "error", code: 1, status: "X", message } });

  test.each([
    [401, "invalid x-api-key", "MODEL_KEY"],
    [403, "not for you", "MODEL_KEY"],
    [404, "model: claude-x", "MODEL_UNKNOWN"],
    [429, "slow down", "MODEL_BUSY"],
    [503, "overloaded", "MODEL_BUSY"],
    [500, "oops", "MODEL_FAILED"],
    [400, "prompt is too long: 250000 tokens > 200000 maximum", "MODEL_WINDOW"],
    [400, "This model's maximum context length is 8192 tokens.", "MODEL_WINDOW"],
    [400, "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", "MODEL_WINDOW"],
    [
      400,
      "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 533603 tokens.",
      "MODEL_WINDOW",
    ],
    [
      400,
      "Your input exceeds the context window of this model. Please adjust your input and try again.",
      "MODEL_WINDOW",
    ],
    [400, "the request exceeds the available context size. try increasing the context size", "MODEL_WINDOW"],
    [400, "messages: roles must alternate", "MODEL_REFUSED"],
  ])("%i %s is %s, of every provider", async (status, words, code) => {
    const { url } = await server(json(status, body(words)));
    for (const name of NAMES) {
      const shown = explainModelError(await failureOf(name, url), name);
      expect(shown.code, name).toBe(code);
      expect(shown.message).toContain(name);
      expect(shown.message).toMatch(/recorded/);
      expect(shown.message).not.toMatch(/\n|secret/i);
    }
  });

  test("behind retries, and with the time to wait", async () => {
    const { url, asked } = await server(json(429, body("slow down"), { "retry-after-ms": "1", "retry-after": "17" }));
    const shown = explainModelError(await failureOf("anthropic/claude-x", url, 1), "anthropic/claude-x");
    expect(asked).toHaveLength(2);
    expect(shown).toMatchObject({ code: "MODEL_BUSY", message: expect.stringContaining("in 17 seconds") });
  });

  test("nobody listens, or the connection breaks", async () => {
    const { url } = await server((response) => response.destroy());
    const closed = createServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const address = `127.0.0.1:${(closed.address() as AddressInfo).port}`;
    closed.close();
    await once(closed, "close");
    for (const name of NAMES) {
      expect(explainModelError(await failureOf(name, `http://${address}`), name)).toMatchObject({
        code: "MODEL_UNREACHABLE",
        message: expect.stringContaining(address),
      });
      expect(explainModelError(await failureOf(name, url), name).code).toBe("MODEL_UNREACHABLE");
    }
  });

  test("an error in the middle of a stream", async () => {
    const event = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const start = {
      type: "message_start",
      message: { id: "1", model: "m", role: "assistant", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
    };
    const { url } = await server((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end([start, event].map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join(""));
    });
    expect(explainModelError(await failureOf("anthropic/claude-x", url), "anthropic/claude-x").code).toBe("MODEL_BUSY");
  });

  test("the failures of the offline model", async () => {
    const { model } = await resolveModel("offline", { env: {} });
    for (const [prompt, code] of [
      ["fail: 500", "MODEL_FAILED"],
      ["fail: 429", "MODEL_BUSY"],
      ["fail: window", "MODEL_WINDOW"],
      ["fail: cut after 3 words", "MODEL_UNREACHABLE"],
      ["fail: unreachable", "MODEL_UNREACHABLE"],
      ["fail: error after 1 word", "MODEL_BUSY"],
      ["fail: malformed", "MODEL_FAILED"],
    ] as const) {
      const failure = await failing({ model, prompt, maxRetries: 0 });
      expect(explainModelError(failure, "offline/offline").code, prompt).toBe(code);
    }
  });

  test("anything else is told too: a timeout, no output, not even an error", () => {
    expect(
      explainModelError(AbortSignal.timeout(0).reason ?? new DOMException("late", "TimeoutError"), "a/b").code,
    ).toBe("MODEL_UNREACHABLE");
    expect(explainModelError(Object.assign(new Error("x"), { name: "AI_NoOutputGeneratedError" }), "a/b").code).toBe(
      "MODEL_FAILED",
    );
    for (const odd of [undefined, null, 3, "no", {}]) expect(explainModelError(odd, "a/b").code).toBe("MODEL_FAILED");
    const circle: { cause?: unknown } = {};
    circle.cause = circle;
    expect(explainModelError(circle, "a/b").code).toBe("MODEL_FAILED");
  });
});
