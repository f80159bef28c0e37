import { AGENTS } from "./agents.ts";
import { type Cell, STATES } from "./cell.ts";
import { KILLS, LAYOUTS } from "./seat.ts";

/** Why none of this can run here; null if it can. */
export const notHere: string | null =
  process.platform === "linux" ? null : "the drill looks for processes in /proc, which this system does not have";

/** Gemini CLI cannot load a session in the minute in which it began. */
const MINUTE_MS = 65_000;
const minuteLater: readonly Cell[] = AGENTS.filter(({ name }) => name === "gemini").flatMap((agent) =>
  (["alone", "wrapped"] as const).flatMap((layout) =>
    STATES.map((state) => ({ agent, layout, kill: "the whole tree" as const, state, pauseMs: MINUTE_MS })),
  ),
);

/** Every agent, alone and wrapped, killed in every way in every state. An agent that is alone has no proxy to kill. */
const atOnce: readonly Cell[] = AGENTS.flatMap((agent) =>
  LAYOUTS.flatMap((layout) =>
    KILLS.filter((kill) => layout !== "alone" || kill !== "the proxy alone").flatMap((kill) =>
      STATES.map((state) => ({ agent, layout, kill, state })),
    ),
  ),
);

export const wholeMatrix: readonly Cell[] = [...atOnce, ...minuteLater];

/** For the long tier: each kill in each state once, spread over the agents, so that each is killed in every state. */
export const share: readonly Cell[] = atOnce.filter(({ agent, layout, kill, state }) => {
  const turn = (KILLS.indexOf(kill) + STATES.indexOf(state)) % 4;
  const owner = turn === 0 ? "gemini" : turn === 1 ? "opencode" : "example";
  return layout === "wrapped" && agent.name === owner;
});

export function titleOf({ agent, layout, kill, state, pauseMs }: Cell): string {
  const later = pauseMs === undefined ? "" : ", loaded a minute later";
  return `${agent.program.name} ${agent.program.version}, ${layout}, ${state}: ${kill} is killed${later}`;
}
