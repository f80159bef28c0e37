import type { Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Markdown, Plain } from "../parts/Text.tsx";
import { useVirtual } from "../parts/use-virtual.ts";
import type { ItemPages } from "../state/item-pages.ts";
import type { LiveText } from "../state/live-text.ts";
import { type Observable, useValue } from "../state/observable.ts";
import { messageOf, parallelCalls } from "../state/sparse-items.ts";
import { itemLabel, subjectOf } from "../text/item-words.ts";
import type { Stretch } from "../timeline/time-scale.ts";
import type { CallFacts } from "./CallCard.tsx";
import { Row, type RowActions } from "./Row.tsx";

export interface TranscriptCommands {
  goTo(index: number): void;
  /** The index of the first row on the screen. */
  readonly top: number;
}

interface Props {
  readonly pages: ItemPages;
  /** What the model is saying now. */
  readonly live: LiveText | null;
  /** The end of the output of each running tool, by call. */
  readonly outputs: Readonly<Record<string, string>>;
  readonly actions: RowActions | null;
  readonly facts: ReadonlyMap<string, CallFacts>;
  readonly commands: { current: TranscriptCommands | null };
  /** Receives the times of what is on the screen. */
  readonly reading: Observable<Stretch | null>;
  /** What comes after the last message: an interruption, questions. */
  readonly children?: ComponentChildren;
}

const ESTIMATE = 90;
const NEAR_END = 120;

export function Transcript({ pages, live, outputs, actions, facts, commands, reading, children }: Props) {
  const items = useValue(pages.items);
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const marked = useRef<number | null>(null);

  const virtual = useVirtual({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ESTIMATE,
    getItemKey: (index) => items[index]?.id ?? index,
    overscan: 6,
    paddingStart: 8,
  });
  const rows = virtual.getVirtualItems();
  const [first, last] = [rows[0]?.index ?? 0, rows.at(-1)?.index ?? 0];

  // What was loaded may be dropped, when the conversation changes in a way that no event told.
  const isLoaded = rows.every(({ index }) => items[index]);
  useEffect(() => pages.ensure(first - 20, last + 20), [first, last, items.length, pages, isLoaded]);
  useEffect(() => {
    const shown = visibleRange(virtual, scroller.current);
    const times = shown
      .map((index) => items[index]?.at)
      .filter((at) => at !== undefined)
      .map(Date.parse);
    const stretch = times.length === 0 ? null : { startMs: Math.min(...times), endMs: Math.max(...times) };
    if (stretch?.startMs !== reading.value?.startMs || stretch?.endMs !== reading.value?.endMs) reading.set(stretch);
  }, [first, last, virtual.scrollOffset, items]);

  const toEnd = (): void => {
    const element = scroller.current!;
    element.scrollTop = element.scrollHeight;
  };
  // A reader at the end stays at the end, also while rows are still being measured.
  useEffect(() => () => reading.set(null), [reading]);
  useLayoutEffect(() => {
    if (isAtEnd.current) toEnd();
  });

  commands.current = {
    top: visibleRange(virtual, scroller.current)[0] ?? 0,
    goTo: (index) => {
      isAtEnd.current = false;
      marked.current = index;
      if (index >= items.length - 1) {
        isAtEnd.current = true;
        toEnd();
      } else virtual.scrollToIndex(index, { align: "start" });
      pages.ensure(index - 10, index + 20);
      requestAnimationFrame(() =>
        scroller.current?.querySelector<HTMLElement>(`[data-index="${index}"]`)?.focus({ preventScroll: true }),
      );
    },
  };

  return (
    <div
      class="transcript"
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label="Conversation"
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
      }}
      onWheel={(event) => {
        if (event.deltaY < 0) isAtEnd.current = false;
      }}
    >
      <div class="column">
        <div
          class="virtual"
          // A feed without articles is an error to screen readers.
          {...(items.length > 0 ? { role: "feed", "aria-busy": live !== null, "aria-label": "Messages" } : {})}
          style={{ height: `${virtual.getTotalSize()}px` }}
        >
          {rows.map(({ index, start, key }) => {
            const item = items[index];
            const calls = parallelCalls(items, index);
            const next = items[index + 1];
            const isHidden = item?.kind === "call" && calls === null;
            return (
              <article
                key={key}
                ref={(element) => virtual.measureElement(element)}
                data-index={index}
                tabIndex={-1}
                aria-posinset={index + 1}
                aria-setsize={items.length}
                aria-label={item ? itemLabel(item) : "Loading"}
                class={`place${isHidden ? " is-hidden" : ""}${item?.kind === "prompt" ? " is-prompt" : ""}${marked.current === index ? " is-marked" : ""}`}
                style={{ transform: `translateY(${start}px)` }}
              >
                {isHidden ? null : item ? (
                  <Row
                    item={item}
                    calls={calls ?? []}
                    isEnd={!next || messageOf(next.id) !== messageOf(item.id)}
                    outputs={outputs}
                    facts={facts}
                    actions={actions}
                    isReplaced={pages.until !== undefined}
                  />
                ) : (
                  <div class="skeleton" aria-hidden="true" />
                )}
              </article>
            );
          })}
        </div>
        {live ? <Live live={live} /> : null}
        {children}
      </div>
    </div>
  );
}

/** What the model is saying now. */
function Live({ live }: { readonly live: LiveText }) {
  const { text, reasoning, calls } = live;
  const end = useMemo(() => reasoning.slice(-1500), [reasoning]);
  return (
    <div class="item item-answer live" aria-label="The model is answering" role="group">
      {reasoning !== "" && text === "" ? (
        <div class="reasoning-live">
          <Plain text={end} />
        </div>
      ) : null}
      {text === "" ? null : <Markdown text={text.length > 12_000 ? text.slice(-12_000) : text} />}
      {calls.map(({ id, name, input }) => (
        <div key={id} class="call call-open">
          <div class="call-head">
            <span class="call-name">{name}</span>
            <span class="call-subject">{subjectOf(input.slice(-300))}</span>
          </div>
        </div>
      ))}
      <span class="caret" aria-hidden="true" />
    </div>
  );
}

function visibleRange(virtual: Virtualizer<HTMLElement, HTMLElement>, scroller: HTMLElement | null): number[] {
  const top = virtual.scrollOffset ?? 0;
  const bottom = top + (scroller?.clientHeight ?? 0);
  return virtual
    .getVirtualItems()
    .filter(({ start, end }) => end > top && start < bottom)
    .map(({ index }) => index);
}
