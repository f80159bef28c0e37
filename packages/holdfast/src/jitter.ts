/** From half of `ms` to one and a half: processes that wait for the same thing should not all wake at once. */
export function jitter(ms: number): number {
  return ms * (0.5 + Math.random());
}
