import { callStateWords } from "@holdfast/server/internal/contract";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/http.ts";
import type { Item, Session, Transcript } from "../api/wire.ts";
import { Icon } from "../parts/Icon.tsx";
import { hashOf } from "../state/route.ts";
import { commonLength } from "../state/sparse-items.ts";
import { attempt } from "../state/toasts.ts";
import { countWords } from "../text/durations.ts";
import { subjectOf } from "../text/item-words.ts";
import { visible } from "../text/visible.ts";

/** How much of each side is read and shown after the point where they part. */
const READ_MAX = 2000;
const SHOWN_MAX = 150;

interface Side {
  readonly session: Session;
  readonly items: readonly Item[];
}

/** A fork beside the session that it came from: what they have in common is folded. */
export function ComparePanel({ fork }: { readonly fork: Session }) {
  const [sides, setSides] = useState<{ readonly source: Side; readonly fork: Side } | null>(null);
  const from = fork.forkedFrom?.session;
  useEffect(() => {
    if (!from) return;
    void attempt(async () => {
      const [source, other] = await Promise.all([read(from), read(fork.id)]);
      setSides({ source, fork: other });
    });
  }, [from, fork.id, fork.cursor]);
  if (!from) return <p class="empty">This session is not a fork.</p>;
  if (!sides) return <p class="empty">Loading…</p>;
  const common = commonLength(sides.source.items, sides.fork.items);
  return (
    <div class="panel compare">
      <h2>The fork beside its source</h2>
      <p class="compare-common">
        <Icon name="fork" />
        {common === 0
          ? "They no longer have any messages in common."
          : `The first ${countWords(common, "item")} are the same in both.`}
      </p>
      <div class="compare-sides">
        <Column title="Source" side={sides.source} from={common} />
        <Column title="Fork" side={sides.fork} from={common} />
      </div>
    </div>
  );
}

async function read(id: string): Promise<Side> {
  const [session, transcript] = await Promise.all([
    get<Session>(`/sessions/${id}`),
    get<Transcript>(`/sessions/${id}/transcript`, { from: 0, limit: READ_MAX }),
  ]);
  return { session, items: transcript.items };
}

function Column({ title, side, from }: { readonly title: string; readonly side: Side; readonly from: number }) {
  const own = side.items.slice(from);
  const last = from > 0 ? side.items[from - 1] : undefined;
  return (
    <section class="compare-side" aria-label={title}>
      <h3>
        {title}: <a href={hashOf({ session: side.session.id })}>{side.session.title || "(no title)"}</a>
      </h3>
      {last ? (
        <p class="compare-last">
          <span class="hint">in common, last:</span> {lineOf(last)}
        </p>
      ) : null}
      {own.length === 0 ? <p class="hint">Nothing after that.</p> : null}
      <ol>
        {own.slice(0, SHOWN_MAX).map((item) => (
          <li key={item.id} class={`compare-item compare-${item.kind}`}>
            {lineOf(item)}
          </li>
        ))}
      </ol>
      {own.length > SHOWN_MAX ? <p class="hint">{own.length - SHOWN_MAX} more in the session.</p> : null}
    </section>
  );
}

function lineOf(item: Item): string {
  if (item.kind === "call") return `${item.name} ${visible(subjectOf(item.input))} – ${callStateWords[item.state]}`;
  return visible(item.text.slice(0, 600));
}
