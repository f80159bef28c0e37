import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SearchHit } from "../api/wire.ts";
import { Icon } from "../parts/Icon.tsx";
import { useVirtual } from "../parts/use-virtual.ts";
import { type Filters, isFiltered, NO_FILTERS, passes } from "../state/filters.ts";
import type { ListStore } from "../state/list-store.ts";
import { useValue } from "../state/observable.ts";
import { go, route } from "../state/route.ts";
import { theme, toggleTheme } from "../state/theme.ts";
import { countWords } from "../text/durations.ts";
import { FilterBar } from "./FilterBar.tsx";
import { SessionRow } from "./SessionRow.tsx";

const ROW = 68;
const ROW_WITH_HIT = 98;

export interface ListCommands {
  focusSearch(): void;
  move(step: 1 | -1): void;
  openSelected(): void;
}

interface Props {
  readonly list: ListStore;
  readonly commands: { current: ListCommands | null };
  readonly onNew: () => void;
  readonly onHelp: () => void;
}

export function ListPane({ list, commands, onNew, onHelp }: Props) {
  const sessions = useValue(list.sessions);
  const isComplete = useValue(list.isComplete);
  const failure = useValue(list.failure);
  const found = useValue(list.found);
  const { session: open } = useValue(route);
  const chosenTheme = useValue(theme);
  const [filters, setFilters] = useState<Filters>(NO_FILTERS);
  const [query, setQuery] = useState("");
  const [areFiltersOpen, setFiltersOpen] = useState(false);
  const [selected, setSelected] = useState<string | null>(open);
  const scroller = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const nowMs = Date.now();

  const hits = useMemo(() => hitsBySession(found?.hits ?? null), [found]);
  const rows = useMemo(() => {
    const filtered = isFiltered(filters) ? sessions.filter((one) => passes(one, filters, nowMs)) : sessions;
    if (query.trim() === "") return filtered;
    const wanted = query.trim().toLowerCase();
    return filtered.filter(({ id, title }) => hits.has(id) || title.toLowerCase().includes(wanted));
  }, [sessions, filters, query, hits]);

  const virtual = useVirtual({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (hits.get(rows[index]!.id)?.message ? ROW_WITH_HIT : ROW),
    getItemKey: (index) => rows[index]?.id ?? index,
    overscan: 8,
  });
  useEffect(() => virtual.measure(), [hits]);
  useEffect(() => {
    if (open) setSelected(open);
  }, [open]);

  const move = (step: 1 | -1): void => {
    const at = rows.findIndex(({ id }) => id === selected);
    const next = Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step));
    if (!rows[next]) return;
    setSelected(rows[next]!.id);
    virtual.scrollToIndex(next, { align: "auto" });
    // Beside an open session the list leads: what is selected is what is shown.
    if (open) go({ session: rows[next]!.id });
  };
  const openRow = (id: string): void => {
    setSelected(id);
    const hit = hits.get(id);
    go({ session: id, ...(hit?.message ? { item: hit.message } : {}) });
  };
  commands.current = {
    focusSearch: () => {
      field.current?.focus();
      field.current?.select();
    },
    move,
    openSelected: () => {
      if (selected) openRow(selected);
    },
  };

  return (
    <nav class="list-pane" aria-label="Sessions">
      <header class="list-head">
        <a class="brand" href="#/" aria-label="Holdfast: all sessions">
          <img src="./icon.svg" alt="" width="22" height="22" />
          <span>Holdfast</span>
        </a>
        <div class="list-tools">
          <button
            type="button"
            class="icon-button"
            aria-label={chosenTheme === "dark" ? "Use the light theme" : "Use the dark theme"}
            title="Light or dark (t)"
            onClick={toggleTheme}
          >
            <Icon name={chosenTheme === "dark" ? "sun" : "moon"} />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label="Keyboard shortcuts"
            title="Keyboard shortcuts (?)"
            onClick={onHelp}
          >
            <Icon name="help" />
          </button>
          <button type="button" class="button button-small" onClick={onNew}>
            <Icon name="plus" />
            New
          </button>
        </div>
      </header>
      <div class="search">
        <Icon name="search" />
        <input
          ref={field}
          type="search"
          placeholder="Search all sessions"
          aria-label="Search all sessions"
          aria-keyshortcuts="/"
          value={query}
          onInput={(event) => {
            setQuery(event.currentTarget.value);
            list.search(event.currentTarget.value);
          }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") move(1);
            else if (event.key === "ArrowUp") move(-1);
            else if (event.key === "Enter" && selected) openRow(selected);
            else return;
            event.preventDefault();
          }}
        />
        <button
          type="button"
          class={isFiltered(filters) ? "icon-button is-on" : "icon-button"}
          aria-expanded={areFiltersOpen}
          aria-label="Filters"
          title="Filters"
          onClick={() => setFiltersOpen(!areFiltersOpen)}
        >
          <Icon name="down" />
        </button>
      </div>
      {areFiltersOpen || isFiltered(filters) ? (
        <FilterBar sessions={sessions} filters={filters} onChange={setFilters} />
      ) : null}
      <p class="list-count" aria-live="polite">
        {countText(rows.length, sessions.length, isComplete, found?.hits === null)}
      </p>
      {failure ? (
        <p class="list-failure" role="alert">
          {failure.message}
        </p>
      ) : null}
      <div
        class="list-rows"
        ref={scroller}
        role="listbox"
        tabIndex={0}
        aria-label="Sessions, newest first"
        aria-activedescendant={selected && rows.some(({ id }) => id === selected) ? `session-${selected}` : undefined}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") move(1);
          else if (event.key === "ArrowUp") move(-1);
          else if (event.key === "Enter" && selected) openRow(selected);
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      >
        <div role="presentation" class="virtual" style={{ height: `${virtual.getTotalSize()}px` }}>
          {virtual.getVirtualItems().map(({ index, start, size, key }) => (
            <SessionRow
              key={key}
              session={rows[index]!}
              hit={hits.get(rows[index]!.id) ?? null}
              query={query}
              nowMs={nowMs}
              isSelected={rows[index]!.id === selected}
              index={index}
              count={rows.length}
              top={start}
              height={size}
              onOpen={() => openRow(rows[index]!.id)}
            />
          ))}
        </div>
        {isComplete && rows.length === 0 ? <Empty isFiltered={sessions.length > 0} /> : null}
      </div>
    </nav>
  );
}

function Empty({ isFiltered: some }: { readonly isFiltered: boolean }) {
  return some ? (
    <p class="empty" role="presentation">
      No session matches. Clear the search or the filters to see all sessions.
    </p>
  ) : (
    <p class="empty" role="presentation">
      No sessions yet. Start one with “New”, or run <code>holdfast chat</code> in a terminal.
    </p>
  );
}

function hitsBySession(hits: readonly SearchHit[] | null): Map<string, SearchHit> {
  const map = new Map<string, SearchHit>();
  // A hit in a message says more than one in the title, which is shown anyway.
  for (const hit of hits ?? []) if (!map.get(hit.session)?.message) map.set(hit.session, hit);
  return map;
}

function countText(shown: number, all: number, isComplete: boolean, isSearching: boolean): string {
  if (isSearching) return "Searching…";
  const total = `${countWords(all, "session")}${isComplete ? "" : " so far"}`;
  return shown === all ? total : `${shown.toLocaleString("en")} of ${total}`;
}
