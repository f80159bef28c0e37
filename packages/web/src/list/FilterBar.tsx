import { useMemo } from "preact/hooks";
import type { Summary } from "../api/wire.ts";
import { STATUS_WORDS } from "../parts/Chip.tsx";
import { choicesIn, type Filters, isFiltered, NO_FILTERS } from "../state/filters.ts";

interface Props {
  readonly sessions: readonly Summary[];
  readonly filters: Filters;
  readonly onChange: (filters: Filters) => void;
}

/** A list with more choices than this cannot be read. */
const CHOICES_MAX = 200;

export function FilterBar({ sessions, filters, onChange }: Props) {
  const { folders, agents } = useMemo(() => choicesIn(sessions), [sessions]);
  const change = (part: Partial<Filters>): void => onChange({ ...filters, ...part });
  return (
    <div class="filters" role="group" aria-label="Filters">
      <select
        aria-label="Status"
        value={filters.status}
        onChange={(event) => change({ status: event.currentTarget.value as Filters["status"] })}
      >
        <option value="">Any status</option>
        {Object.entries(STATUS_WORDS).map(([status, words]) => (
          <option key={status} value={status}>
            {words}
          </option>
        ))}
      </select>
      <select
        aria-label="Date"
        value={String(filters.days)}
        onChange={(event) => change({ days: Number(event.currentTarget.value) })}
      >
        <option value="0">Any date</option>
        <option value="1">Last 24 hours</option>
        <option value="7">Last 7 days</option>
        <option value="30">Last 30 days</option>
      </select>
      <select
        aria-label="Folder"
        value={filters.folder}
        onChange={(event) => change({ folder: event.currentTarget.value })}
      >
        <option value="">Any folder</option>
        {folders.slice(0, CHOICES_MAX).map((folder) => (
          <option key={folder} value={folder}>
            {folder}
          </option>
        ))}
      </select>
      <select
        aria-label="Agent"
        value={filters.agent}
        onChange={(event) => change({ agent: event.currentTarget.value })}
      >
        <option value="">Any agent</option>
        {agents.slice(0, CHOICES_MAX).map((agent) => (
          <option key={agent} value={agent}>
            {agent}
          </option>
        ))}
      </select>
      {isFiltered(filters) ? (
        <button type="button" class="link-button" onClick={() => onChange(NO_FILTERS)}>
          Clear filters
        </button>
      ) : null}
    </div>
  );
}
