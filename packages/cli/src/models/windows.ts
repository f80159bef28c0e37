/** Tokens that the window of a model holds, by the beginning of its name. The longest beginning that fits counts. Only for deciding when to compact: a provider that refuses earlier is believed. */
const WINDOWS: readonly (readonly [beginning: string, tokens: number])[] = [
  ["anthropic/", 200_000],
  ["openai/", 128_000],
  ["openai/gpt-4.1", 1_000_000],
  ["openai/gpt-5", 400_000],
  ["openai/o1", 200_000],
  ["openai/o3", 200_000],
  ["openai/o4", 200_000],
  ["google/", 1_000_000],
  ["google/gemma", 128_000],
  ["offline/", 32_000],
];

/** Of a server of one's own nothing is known, and local servers mostly run with little. */
const WINDOW_TOKENS_DEFAULT = 32_000;

export function windowTokensOf(name: string): number {
  let found = "";
  let tokens = WINDOW_TOKENS_DEFAULT;
  for (const [beginning, known] of WINDOWS) {
    if (beginning.length <= found.length || !name.startsWith(beginning)) continue;
    found = beginning;
    tokens = known;
  }
  return tokens;
}
