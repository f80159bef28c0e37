import type { SearchHit, Summary } from "../api/wire.ts";
import { STATUS_WORDS } from "../parts/Chip.tsx";
import { agoWords, countWords } from "../text/durations.ts";
import { splitByWords } from "../text/visible.ts";

interface Props {
  readonly session: Summary;
  readonly hit: SearchHit | null;
  readonly query: string;
  readonly nowMs: number;
  readonly isSelected: boolean;
  readonly index: number;
  readonly count: number;
  readonly top: number;
  readonly height: number;
  readonly onOpen: () => void;
}

export function SessionRow({ session, hit, query, nowMs, isSelected, index, count, top, height, onOpen }: Props) {
  const { id, title, status, at, turns, queued, cwd, app, unreadable } = session;
  return (
    <div
      id={`session-${id}`}
      role="option"
      tabIndex={-1}
      aria-selected={isSelected}
      aria-posinset={index + 1}
      aria-setsize={count}
      class={`row row-${status}${isSelected ? " is-selected" : ""}`}
      style={{ transform: `translateY(${top}px)`, height: `${height}px` }}
      onClick={onOpen}
      onKeyDown={(event) => {
        if (event.key === "Enter" || event.key === " ") onOpen();
      }}
    >
      <div class="row-top">
        <span class="row-title" dir="auto">
          {title || "(no title)"}
        </span>
        <time class="row-time" dateTime={at}>
          {agoWords(at, nowMs)}
        </time>
      </div>
      <div class="row-bottom">
        {unreadable ? (
          <span class="row-status status-interrupted">Cannot be read</span>
        ) : status === "idle" ? null : (
          <span class={`row-status status-${status}`}>
            <span class="dot" aria-hidden="true" />
            {STATUS_WORDS[status]}
          </span>
        )}
        <span class="row-meta">
          {[
            cwd?.split(/[\\/]/).at(-1),
            app === "holdfast" ? undefined : app,
            countWords(turns, "turn"),
            queued > 0 ? `${queued} queued` : undefined,
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </div>
      {hit?.message ? (
        <div class="row-hit">
          {splitByWords(hit.excerpt, query).map(({ text, isHit }, place) =>
            isHit ? <mark key={place}>{text}</mark> : text,
          )}
        </div>
      ) : null}
    </div>
  );
}
