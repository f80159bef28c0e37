import type { ChatEvent } from "../host/host.ts";
import type { Item } from "../transcript/item.ts";
import { callWords } from "../transcript/words.ts";

/** What the agents reported as recorded, over all lives: from then on it must be in the journal. */
export class Acknowledgements {
  /** Messages or parts of them, by item id, as last reported. */
  readonly items = new Map<string, { readonly item: Item; readonly life: number }>();
  /** Tool starts by call, and how often each was reported. */
  readonly starts = new Map<string, { readonly words: string; readonly times: number; readonly life: number }>();
  /** Results, by call. */
  readonly results = new Map<
    string,
    { readonly words: string; readonly output: string; readonly failed: boolean; readonly life: number }
  >();
  compactions = 0;
  /** The last turn was reported as completed. */
  completed = false;

  hear(event: ChatEvent, life: number): void {
    switch (event.type) {
      case "item":
        this.#item(event.item, life);
        return;
      case "tool.started": {
        const times = (this.starts.get(event.call)?.times ?? 0) + 1;
        this.starts.set(event.call, { words: callWords(event), times, life });
        return;
      }
      case "tool.ended": {
        const words = this.starts.get(event.call)?.words ?? event.name;
        this.results.set(event.call, { words, output: event.output, failed: event.failed, life });
        return;
      }
      case "replaced":
        this.compactions += 1;
        return;
      case "turn.ended":
        this.completed = event.outcome === "completed";
        return;
      default:
        return;
    }
  }

  #item(item: Item, life: number): void {
    // Text that was cut off is not a message, so nothing was promised about it.
    if ("incomplete" in item && item.incomplete) return;
    this.items.set(item.id, { item, life });
    if (item.kind !== "call") return;
    if (item.state !== "done" && item.state !== "failed") return;
    this.results.set(item.call, {
      words: callWords(item),
      output: item.output ?? "",
      failed: item.state === "failed",
      life,
    });
  }
}
