import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk/unstable";
import type { ChatState, Mode } from "@holdfast/server/contract";

const MODES: readonly { readonly id: Mode; readonly name: string; readonly description: string }[] = [
  { id: "ask", name: "Ask", description: "Ask before anything that no rule allows." },
  { id: "accept edits", name: "Accept edits", description: "Change files without asking; ask before commands." },
  { id: "plan", name: "Plan", description: "Change nothing and run nothing; answer with a plan." },
];

export function modesOf({ mode }: ChatState): SessionModeState {
  return { currentModeId: mode, availableModes: [...MODES] };
}

export function modeCalled(id: string): Mode | null {
  return MODES.find((mode) => mode.id === id)?.id ?? null;
}

/** The models that a person can choose from, the current one always among them. */
export function configOf({ model }: ChatState, models: readonly string[]): SessionConfigOption[] {
  const options = [...new Set([model, ...models])].map((name) => ({ value: name, name }));
  return [{ id: MODEL, name: "Model", category: "model", type: "select", currentValue: model, options }];
}

export const MODEL = "model";
