/**
 * Tokens that may be sent to a model, by its name; the first that fits counts. From the providers' documentation as of
 * November 2026, and on the safe side where that differs within a family or costs more beyond a limit. Only for
 * deciding when
 * to compact: a provider that refuses earlier is believed, and `windowTokens` of the configuration counts more.
 */
const WINDOWS: readonly (readonly [name: RegExp, tokens: number])[] = [
  // The newest ones take a million, others only with a beta, and above 200,000 it may cost more.
  [/^anthropic\//u, 200_000],
  [/^openai\/gpt-[^/]*-chat/u, 128_000],
  // 400,000 are input and output together, of which 272,000 may be input; later ones take more, for more.
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

/** Of a server of one's own nothing is known, and local servers mostly run with little. So does the offline model. */
const WINDOW_TOKENS_DEFAULT = 32_000;

export function windowTokensOf(name: string): number {
  return WINDOWS.find(([known]) => known.test(name))?.[1] ?? WINDOW_TOKENS_DEFAULT;
}
