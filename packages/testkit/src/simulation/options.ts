import type { StoreFactory } from "./runner.ts";
import type { ProfileName } from "./workload.ts";

export interface SimulationOptions {
  readonly open: StoreFactory;
  readonly seed: number;
  /** The kind of workload. Default: `mixed`. */
  readonly profile?: ProfileName;
  /** The number of its tasks. Default: 24. */
  readonly length?: number;
  /** Stops when this many states have been checked. Default: never. */
  readonly states?: number;
  /** Stops at this many failures. Default: 5. */
  readonly failuresMax?: number;
  /** Only this case, by the name that a failure gives it: `37:power:late`, `37:kill:12/4:power:8123`, `52:EIO:once`. */
  readonly only?: string;
  readonly onProgress?: (states: number) => void;
}
