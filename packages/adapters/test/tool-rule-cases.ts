import type { ProbeAnswer } from "holdfast";

/** What every adapter does with the rules of its tools. */

/** Probes that leave a call unknown. */
export const PROBES_WITHOUT_ANSWER: [string, () => Promise<ProbeAnswer>][] = [
  ["throws", () => Promise.reject(new Error("no connection"))],
  ["hangs", () => new Promise<never>(() => {})],
];

/** The rules of the process that died, those of the next one, and how often the tool `charge` runs in all. */
export const RULES_OVER_A_DEPLOY = [
  ["safe then, never now", { replay: { charge: "safe" } }, {}, 1],
  ["never then, safe now", {}, { replay: { charge: "safe" } }, 1],
  ["safe then and now", { replay: { charge: "safe" } }, { replay: { charge: "safe" } }, 2],
] as const;
