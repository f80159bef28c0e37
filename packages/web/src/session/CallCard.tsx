import { callStateWords } from "@holdfast/server/internal/contract";
import { useState } from "preact/hooks";
import { get } from "../api/http.ts";
import type { CallItem, Item, Transcript } from "../api/wire.ts";
import { Diff, DiffCounts } from "../parts/Diff.tsx";
import { Icon } from "../parts/Icon.tsx";
import { Plain } from "../parts/Text.tsx";
import { hashOf } from "../state/route.ts";
import { attempt } from "../state/toasts.ts";
import { durationWords } from "../text/durations.ts";
import { subjectOf } from "../text/item-words.ts";
import { visible } from "../text/visible.ts";
import { editRows } from "./edit-rows.ts";
import { Files } from "./Files.tsx";

interface Props {
  readonly item: CallItem;
  /** The end of its output while it runs. */
  readonly output: string | undefined;
  readonly facts: CallFacts | undefined;
  /** The whole conversation was replaced, which is said once. */
  readonly isReplaced: boolean;
}

/** What the timeline knows of a call. */
export interface CallFacts {
  readonly durationMs: number | null;
  /** The session of its sub-agent. */
  readonly child: string | null;
}

/** A tool call: what it was asked, what came of it, and how long it took. */
export function CallCard({ item, output, facts, isReplaced }: Props) {
  const durationMs = facts?.durationMs ?? null;
  const child = item.child ?? facts?.child ?? null;
  const [isInputOpen, setInputOpen] = useState(false);
  const edit = editRows(item);
  const shownOutput = item.output ?? output;
  const isQuiet = item.state === "done" && edit !== null;
  const subject = subjectOf(item.input);
  return (
    <div class={`call call-${item.state}`}>
      <div class="call-head">
        <span class="call-icon">
          <Icon name={child ? "branch" : edit ? "file" : "tool"} />
        </span>
        <span class="call-name">{item.name}</span>
        <span class="call-subject" title={visible(subject)}>
          {visible(subject)}
        </span>
        {edit ? <DiffCounts rows={edit.rows} /> : null}
        <span class={`call-state state-${item.state}`}>
          {callStateWords[item.state]}
          {durationMs === null ? "" : ` · ${durationWords(durationMs)}`}
        </span>
        <button
          type="button"
          class="icon-button"
          aria-expanded={isInputOpen}
          aria-label="Show the input"
          title="Show the input"
          onClick={() => setInputOpen(!isInputOpen)}
        >
          <Icon name={isInputOpen ? "down" : "right"} />
        </button>
      </div>
      {isInputOpen ? (
        <div class="call-part">
          <span class="part-name">Input</span>
          <Plain
            class="code"
            text={typeof item.input === "string" ? item.input : (JSON.stringify(item.input, null, 2) ?? "(none)")}
            lines={60}
          />
        </div>
      ) : null}
      {edit ? <Diff rows={edit.rows} max={16} /> : null}
      {shownOutput && !isQuiet ? <Plain class="code call-output" text={shownOutput} lines={10} /> : null}
      <Files files={item.files} />
      {child ? <SubAgent id={child} /> : null}
      {item.by === "provider" ? <p class="hint">Run by the provider.</p> : null}
      {item.aside && !isReplaced ? <p class="hint">{item.aside}</p> : null}
    </div>
  );
}

/** The end of a sub-agent's conversation, on request. */
function SubAgent({ id }: { readonly id: string }) {
  const [items, setItems] = useState<readonly Item[] | null>(null);
  const toggle = (): void => {
    if (items) setItems(null);
    else
      void attempt(
        () => get<Transcript>(`/sessions/${id}/transcript`, { last: 12 }),
        (got) => setItems(got.items),
      );
  };
  return (
    <div class="sub-agent">
      <div class="sub-head">
        <button type="button" class="link-button" aria-expanded={items !== null} onClick={toggle}>
          <Icon name={items ? "down" : "right"} />
          What the sub-agent did
        </button>
        <a href={hashOf({ session: id })}>Open its session</a>
      </div>
      {items ? (
        <ol class="sub-items">
          {items.map((item) => (
            <li key={item.id} class={`sub-${item.kind}`}>
              {item.kind === "call" ? (
                <>
                  {item.name} <span class="call-subject">{visible(subjectOf(item.input))}</span>{" "}
                  <span class={`state-${item.state}`}>{callStateWords[item.state]}</span>
                </>
              ) : (
                visible(item.text.slice(0, 400))
              )}
            </li>
          ))}
        </ol>
      ) : null}
    </div>
  );
}
