/** `850 ms`, `2.4 s`, `3 min 12 s`, `2 h 5 min`, `3 days`: two units at most. */
export function durationWords(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.round(hours / 24)} days`;
}

/** How long ago, for lists: `now`, `5 min`, `3 h`, `2 d`, then the date. */
export function agoWords(at: string, nowMs: number): string {
  const ms = nowMs - Date.parse(at);
  if (Number.isNaN(ms)) return "";
  if (ms < 60_000) return "now";
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h`;
  if (ms < 7 * 86_400_000) return `${Math.floor(ms / 86_400_000)} d`;
  return new Date(at).toLocaleDateString("en", { month: "short", day: "numeric", year: "numeric" });
}

export function countWords(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** `1,234`, `12.3k`, `4.5M`. */
export function tokensWords(count: number): string {
  if (count < 10_000) return count.toLocaleString("en");
  return count < 1_000_000 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function costWords({ amount, currency }: { readonly amount: number; readonly currency: string }): string {
  const digits = Math.abs(amount) >= 0.1 || amount === 0 ? 2 : 4;
  return currency === "USD" ? `$${amount.toFixed(digits)}` : `${amount.toFixed(digits)} ${currency}`;
}
