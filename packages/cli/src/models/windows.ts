/**
 * Input tokens by model name; the first match counts. From the providers' documentation as of November 2026, and on the
 * safe side where values differ within a family or cost more beyond a limit. Used only to decide when to compact: a
 * provider that refuses earlier is right, and `windowTokens` in the configuration takes precedence.
 */
const WINDOWS: readonly (readonly [name: RegExp, tokens: number])[] = [
  // The newest models take a million, others only in a beta, and more than 200,000 may cost extra.
  [/^anthropic\//u, 200_000],
  [/^openai\/gpt-[^/]*-chat/u, 128_000],
  // 400,000 tokens include the output; 272,000 may be input. Later models take more, at a higher price.
  [/^openai\/gpt-5/u, 272_000],
  [/^openai\/gpt-4\.1/u, 1_000_000],
  [/^openai\/gpt-4(?:o|\.5|-turbo|-\d{4}-preview)/u, 128_000],
  [/^openai\/gpt-4/u, 8_000],
  [/^openai\/gpt-3\.5/u, 16_000],
  [/^openai\/o1-(?:mini|preview)/u, 128_000],
  [/^openai\/o\d/u, 200_000],
  [/^openai\//u, 128_000],
  [/^google\/gemini-[^/]*-(?:image|tts|live|audio)/u, 32_000],
  [/^google\/gemini-/u, 1_000_000],
];

/** For self-hosted models, whose windows are unknown and usually small, and for the offline model. */
const WINDOW_TOKENS_DEFAULT = 32_000;

export function windowTokensOf(name: string): number {
  return WINDOWS.find(([known]) => known.test(name))?.[1] ?? WINDOW_TOKENS_DEFAULT;
}
