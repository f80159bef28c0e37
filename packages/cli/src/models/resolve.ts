import { Buffer } from "node:buffer";
import type { LanguageModelV4, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { shownAddress } from "holdfast/address";
import { defined } from "../defined.ts";
import { CommandError, EXIT } from "../exit.ts";
import { windowTokensOf } from "./windows.ts";

export interface ResolveOptions {
  /** The server of a `compatible` model. Ignored for other providers: their keys must not be sent to it. */
  readonly baseUrl?: string;
  /** Overrides the known window of the model. */
  readonly windowTokens?: number;
  /** How many milliseconds the offline model takes for each delta. */
  readonly offlineDelayMs?: number;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A model that is ready for requests. */
export interface ResolvedModel {
  /** `provider/name` */
  readonly name: string;
  readonly model: LanguageModelV4;
  readonly provider: string;
  readonly windowTokens: number;
  /** Options that every request must carry. */
  readonly providerOptions?: SharedV4ProviderOptions;
}

interface Provider {
  /** The variables that may hold the key, the usual one first. */
  readonly keys: readonly string[];
  readonly address: string;
  readonly needsKey: boolean;
  readonly example: string;
  readonly providerOptions?: SharedV4ProviderOptions;
  /** Loads the provider's package on demand, because that is slow. */
  readonly load: (
    name: string,
    key: string | undefined,
    baseUrl: string | undefined,
    headers: Readonly<Record<string, string>>,
  ) => Promise<LanguageModelV4>;
}

const PROVIDERS: Readonly<Record<string, Provider>> = {
  anthropic: {
    keys: ["ANTHROPIC_API_KEY"],
    address: "ANTHROPIC_BASE_URL",
    needsKey: true,
    example: "anthropic/claude-sonnet-4-5",
    load: async (name, key, baseUrl) => {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic(settings(key, baseUrl)).languageModel(name);
    },
  },
  openai: {
    keys: ["OPENAI_API_KEY"],
    address: "OPENAI_BASE_URL",
    needsKey: true,
    example: "openai/gpt-5",
    // Nothing in the journal may depend on what OpenAI's servers keep (R4). With this, the package requests encrypted
    // reasoning from models that reason.
    providerOptions: { openai: { store: false } },
    load: async (name, key, baseUrl) => {
      const { createOpenAI } = await import("@ai-sdk/openai");
      return createOpenAI(settings(key, baseUrl)).responses(name);
    },
  },
  google: {
    keys: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"],
    address: "GOOGLE_BASE_URL",
    needsKey: true,
    example: "google/gemini-2.5-pro",
    load: async (name, key, baseUrl) => {
      const { createGoogle } = await import("@ai-sdk/google");
      return createGoogle(settings(key, baseUrl)).languageModel(name);
    },
  },
  compatible: {
    keys: ["COMPATIBLE_API_KEY"],
    address: "COMPATIBLE_BASE_URL",
    needsKey: false,
    example: "compatible/qwen3",
    load: async (name, key, baseUrl, headers) => {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({
        name: "compatible",
        baseURL: baseUrl ?? "",
        includeUsage: true,
        headers,
        ...(key ? { apiKey: key } : {}),
      }).languageModel(name);
    },
  },
};

function settings(key: string | undefined, baseUrl: string | undefined): { apiKey?: string; baseURL?: string } {
  return { ...(key ? { apiKey: key } : {}), ...(baseUrl ? { baseURL: baseUrl } : {}) };
}

/**
 * Resolves `offline` or `provider/name` to a model. Sends nothing: a wrong name or key shows at the first request
 * (`explainModelError`). Throws CommandError: MODEL_UNKNOWN for an unknown provider or a missing model name, MODEL_KEY
 * without a key, MODEL_BASE_URL for a missing or invalid address, or one with a password besides a key.
 */
export async function resolveModel(name: string, options: ResolveOptions): Promise<ResolvedModel> {
  const slash = name.indexOf("/");
  const providerName = slash < 0 ? name : name.slice(0, slash);
  const modelName = slash < 0 ? "" : name.slice(slash + 1);
  if (providerName === "offline") return offline(modelName, options);
  const provider = Object.hasOwn(PROVIDERS, providerName) ? PROVIDERS[providerName] : undefined;
  if (!provider) {
    const known = [...Object.values(PROVIDERS).map(({ example }) => example), "offline"].join(", ");
    throw new CommandError(
      EXIT.usage,
      "MODEL_UNKNOWN",
      `Unknown provider "${providerName}". Name a model like this: ${known}.`,
    );
  }
  if (modelName === "") {
    throw new CommandError(
      EXIT.usage,
      "MODEL_UNKNOWN",
      `"${name}" names a provider but no model. Name one, as in --model ${provider.example}.`,
    );
  }
  const key = provider.keys.map((variable) => options.env[variable]).find((value) => value);
  if (!key && provider.needsKey) {
    throw new CommandError(
      EXIT.model,
      "MODEL_KEY",
      `${name} needs a key, but ${provider.keys[0]} is not set. Set it, or try --model offline, which needs none.`,
    );
  }
  const given = (provider.needsKey ? undefined : options.baseUrl) || options.env[provider.address] || undefined;
  checkAddress(name, provider, given);
  const { baseUrl, headers } = withoutCredentials(name, given, key);
  const model = await provider.load(modelName, key, baseUrl, headers);
  const { providerOptions } = provider;
  return {
    name,
    model,
    provider: providerName,
    windowTokens: options.windowTokens ?? windowTokensOf(name),
    ...defined({ providerOptions }),
  };
}

function checkAddress(name: string, provider: Provider, baseUrl: string | undefined): void {
  if (baseUrl === undefined && provider.needsKey) return;
  if (baseUrl === undefined) {
    throw new CommandError(
      EXIT.usage,
      "MODEL_BASE_URL",
      `${name} needs the URL of its server. Give --base-url http://localhost:11434/v1 (Ollama; LM Studio uses port 1234, vLLM 8000), or set ${provider.address}.`,
    );
  }
  if (!/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? "")) {
    throw new CommandError(
      EXIT.usage,
      "MODEL_BASE_URL",
      `"${shownAddress(baseUrl)}" is not a server URL. It must start with http:// or https://, and usually ends with /v1.`,
    );
  }
}

/**
 * Moves a password from the address into a header: no request accepts it in its URL, and errors and journals show the
 * URL.
 */
function withoutCredentials(
  name: string,
  given: string | undefined,
  key: string | undefined,
): { readonly baseUrl: string | undefined; readonly headers: Readonly<Record<string, string>> } {
  const url = given === undefined ? null : new URL(given);
  if (!url || (url.username === "" && url.password === "")) return { baseUrl: given, headers: {} };
  if (key) {
    throw new CommandError(
      EXIT.usage,
      "MODEL_BASE_URL",
      `The server URL of ${name} contains a user or password, but a key is also set, and only one can be sent. Remove one. Nothing was sent.`,
    );
  }
  const user = `${decodedPart(url.username)}:${decodedPart(url.password)}`;
  url.username = "";
  url.password = "";
  return {
    baseUrl: url.href,
    headers: { Authorization: `Basic ${Buffer.from(user, "utf8").toString("base64")}` },
  };
}

/** Leaves an invalid "%" as it is. */
function decodedPart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

async function offline(modelName: string, options: ResolveOptions): Promise<ResolvedModel> {
  if (modelName !== "" && modelName !== "offline") {
    throw new CommandError(EXIT.usage, "MODEL_UNKNOWN", `The only offline model is "offline": --model offline.`);
  }
  const { offlineModel } = await import("./offline/model.ts");
  const windowTokens = options.windowTokens ?? windowTokensOf("offline/offline");
  return {
    name: "offline/offline",
    model: offlineModel({ windowTokens, delayMs: options.offlineDelayMs ?? 0 }),
    provider: "offline",
    windowTokens,
  };
}
