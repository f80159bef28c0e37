import type { Item } from "../api/wire.ts";
import { Menu, type MenuEntry } from "../parts/Menu.tsx";
import { Markdown, Plain } from "../parts/Text.tsx";
import { messageOf } from "../state/sparse-items.ts";
import { CallCard, type CallFacts } from "./CallCard.tsx";
import { Files } from "./Files.tsx";

export interface RowActions {
  /** Null in a conversation that was replaced. */
  readonly fork: ((item: string) => void) | null;
  readonly rewind: ((item: string) => void) | null;
  readonly copyLink: (item: string) => void;
}

interface Props {
  readonly item: Item;
  /** The calls that are drawn side by side in this row. */
  readonly calls: readonly Extract<Item, { kind: "call" }>[];
  /** No other item of its message follows. */
  readonly isEnd: boolean;
  readonly outputs: Readonly<Record<string, string>>;
  readonly facts: ReadonlyMap<string, CallFacts>;
  /** Null for someone who may only read. */
  readonly actions: RowActions | null;
  /** The whole conversation was replaced, which is said once. */
  readonly isReplaced: boolean;
}

export function Row({ item, calls, isEnd, outputs, facts, actions, isReplaced }: Props) {
  return (
    <div class={`item item-${item.kind}${item.aside && !isReplaced ? " is-aside" : ""}`}>
      <div class="item-head">
        <span class="item-who">{whoOf(item)}</span>
        <time dateTime={item.at}>
          {new Date(item.at).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hour12: false })}
        </time>
        {actions ? (
          <Menu label={`Actions for ${whoOf(item).toLowerCase() || "this"}`} entries={entriesFor(item, actions)} />
        ) : null}
      </div>
      <Body item={item} calls={calls} isEnd={isEnd} outputs={outputs} facts={facts} isReplaced={isReplaced} />
      {item.aside && item.kind !== "call" && !isReplaced ? <p class="hint">{item.aside}</p> : null}
    </div>
  );
}

function Body({ item, calls, isEnd, outputs, facts, isReplaced }: Omit<Props, "actions">) {
  switch (item.kind) {
    case "prompt":
      return (
        <>
          <Plain text={item.text} />
          <Files files={item.files} />
        </>
      );
    case "answer":
      return (
        <>
          <Markdown text={item.text} />
          <Files files={item.files} />
          {item.incomplete ? <p class="cut-off">Cut off here</p> : null}
        </>
      );
    case "reasoning":
      return (
        <details class="reasoning" open={item.incomplete && isEnd}>
          <summary>
            Reasoning <span class="hint">{item.text.slice(0, 110).replaceAll(/[\s*#`]+/g, " ")}…</span>
          </summary>
          <Markdown text={item.text} />
          {item.incomplete && isEnd ? <p class="cut-off">Cut off here</p> : null}
        </details>
      );
    case "note":
      return <Plain text={item.text} lines={12} />;
    case "call":
      return (
        <div class={calls.length > 1 ? "calls calls-parallel" : "calls"}>
          {calls.map((call) => (
            <CallCard
              key={call.id}
              item={call}
              output={outputs[call.call]}
              facts={facts.get(call.call)}
              isReplaced={isReplaced}
            />
          ))}
        </div>
      );
  }
}

function whoOf(item: Item): string {
  switch (item.kind) {
    case "prompt":
      return `You · turn ${item.turn}`;
    case "answer":
      return item.model ? item.model.slice(item.model.lastIndexOf("/") + 1) : "Agent";
    case "note":
      return "Note";
    default:
      return "";
  }
}

function entriesFor(item: Item, actions: RowActions): MenuEntry[] {
  const id = messageOf(item.id);
  const { fork, rewind } = actions;
  const entries: MenuEntry[] = [];
  if (fork) entries.push({ label: "Fork from here", icon: "fork", run: () => fork(id) });
  if (rewind && item.kind === "prompt")
    entries.push({ label: "Rewind to before this", icon: "fold", run: () => rewind(item.id) });
  if ("text" in item)
    entries.push({ label: "Copy text", icon: "file", run: () => void navigator.clipboard.writeText(item.text) });
  entries.push({ label: "Copy link", icon: "right", run: () => actions.copyLink(item.id) });
  return entries;
}
