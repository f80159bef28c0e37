import { objectOf, type Params, stringOf } from "../record/message.ts";

/** A request of the editor's that set something, without the session's id. Holds ids that the agent offered. */
export interface SettingRequest {
  readonly method: string;
  readonly params: Params;
}

const MODE = "session/set_mode";
const MODEL = "session/set_model";
const OPTION = "session/set_config_option";
/** Members of the agent's answer to a request that opens a session. */
const SHOWN = ["modes", "models", "configOptions"] as const;

/** The mode, model and options of an open session, as the editor shows them. In memory alone. */
export class SessionSettings {
  #shown: Params = {};
  #commands: Params | null = null;
  /** What the agent is told again when it is started again. By what it sets. */
  readonly #chosen = new Map<string, SettingRequest>();

  constructor(chosen: readonly SettingRequest[] = []) {
    for (const one of chosen) this.#chosen.set(keyOf(one), one);
  }

  /** For an editor that opens the session while the agent has it open. */
  get answer(): Params {
    return this.#shown;
  }

  /** The last `available_commands_update`. */
  get commands(): Params | null {
    return this.#commands;
  }

  get chosen(): readonly SettingRequest[] {
    return [...this.#chosen.values()];
  }

  /** Those that the agent does not have by itself. */
  get missing(): readonly SettingRequest[] {
    return this.chosen.filter((one) => valueIn(one) !== this.#current(one));
  }

  /** The agent has opened the session. */
  opened(answer: unknown): void {
    const given = objectOf(answer) ?? {};
    this.#shown = Object.fromEntries(SHOWN.flatMap((name) => (given[name] == null ? [] : [[name, given[name]]])));
  }

  /** The agent did what the editor asked for. Returns whether that sets something. */
  accepted(method: string, { sessionId: _, ...params }: Params, result: unknown): boolean {
    const one = { method, params };
    if (method !== MODE && method !== MODEL && method !== OPTION) return false;
    this.#chosen.set(keyOf(one), one);
    const options = objectOf(result)?.["configOptions"];
    if (Array.isArray(options)) this.#show("configOptions", options);
    else if (method === MODE) this.#showCurrent("modes", "currentModeId", params["modeId"]);
    else if (method === MODEL) this.#showCurrent("models", "currentModelId", params["modelId"]);
    return true;
  }

  /** The agent does not accept it any more. */
  refused(one: SettingRequest): void {
    this.#chosen.delete(keyOf(one));
  }

  /** The agent has changed something by itself. Returns whether a choice has changed. */
  updated(update: Params): boolean {
    switch (update["sessionUpdate"]) {
      case "available_commands_update":
        this.#commands = update;
        return false;
      case "current_mode_update": {
        const modeId = stringOf(update["currentModeId"]);
        if (modeId === null) return false;
        this.#showCurrent("modes", "currentModeId", modeId);
        const chosen = this.#chosen.get(MODE);
        if (!chosen || chosen.params["modeId"] === modeId) return false;
        this.#chosen.set(MODE, { method: MODE, params: { modeId } });
        return true;
      }
      case "config_option_update":
        if (!Array.isArray(update["configOptions"])) return false;
        this.#show("configOptions", update["configOptions"]);
        return this.#followOptions();
      default:
        return false;
    }
  }

  /** What the editor has to be shown after the agent refused a choice. */
  get updates(): readonly Params[] {
    const { modes, configOptions } = this.#shown;
    const currentModeId = stringOf(objectOf(modes)?.["currentModeId"]);
    return [
      ...(currentModeId === null ? [] : [{ sessionUpdate: "current_mode_update", currentModeId }]),
      ...(Array.isArray(configOptions) ? [{ sessionUpdate: "config_option_update", configOptions }] : []),
    ];
  }

  #followOptions(): boolean {
    let hasChanged = false;
    for (const [key, one] of this.#chosen) {
      const current = one.method === OPTION ? this.#current(one) : undefined;
      if (current === undefined || current === one.params["value"]) continue;
      this.#chosen.set(key, { ...one, params: { ...one.params, value: current } });
      hasChanged = true;
    }
    return hasChanged;
  }

  #current({ method, params }: SettingRequest): unknown {
    if (method === MODE) return objectOf(this.#shown["modes"])?.["currentModeId"];
    if (method === MODEL) return objectOf(this.#shown["models"])?.["currentModelId"];
    const options = this.#shown["configOptions"];
    const found = (Array.isArray(options) ? options : [])
      .map(objectOf)
      .find((one) => one?.["id"] === params["configId"]);
    return found?.["currentValue"];
  }

  #show(name: string, value: unknown): void {
    this.#shown = { ...this.#shown, [name]: value };
  }

  #showCurrent(name: "modes" | "models", member: string, value: unknown): void {
    const before = objectOf(this.#shown[name]);
    if (before) this.#show(name, { ...before, [member]: value });
  }
}

function keyOf({ method, params }: SettingRequest): string {
  return method === OPTION ? `${OPTION} ${String(params["configId"])}` : method;
}

function valueIn({ method, params }: SettingRequest): unknown {
  return params[method === MODE ? "modeId" : method === MODEL ? "modelId" : "value"];
}
