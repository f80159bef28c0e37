import type { Usage, UsageReport } from "../api/wire.ts";
import { costWords, tokensWords } from "../text/durations.ts";
import { useLoaded } from "./use-loaded.ts";

/** Tokens and cost by turn, model and day. */
export function UsagePanel({ id, version }: { readonly id: string; readonly version: unknown }) {
  const { value, failure } = useLoaded<UsageReport>(`/sessions/${id}/usage`, version);
  if (failure)
    return (
      <p class="empty" role="alert">
        {failure}
      </p>
    );
  if (!value) return <p class="empty">Loading…</p>;
  const { total, turns, models, days } = value;
  const most = Math.max(1, ...turns.map(({ usage }) => sumOf(usage)));
  const shown = turns.slice(-200);
  return (
    <div class="panel usage">
      <h2>Tokens and cost</h2>
      <dl class="figures">
        <Figure label="Input" value={tokensWords(total.inputTokens ?? 0)} />
        <Figure label="Output" value={tokensWords(total.outputTokens ?? 0)} />
        <Figure label="Read from cache" value={tokensWords(total.cacheReadTokens ?? 0)} />
        <Figure label="Cost" value={costsOf(total)} />
      </dl>
      <p class="hint">Without sub-agents, which have sessions of their own.</p>
      <Table caption="By model" head="Model" rows={models.map(({ model, usage }) => [model || "unknown", usage])} />
      <Table caption="By day (UTC)" head="Day" rows={days.map(({ day, usage }) => [day, usage])} />
      <h3>By turn</h3>
      {turns.length > shown.length ? (
        <p class="hint">
          The last {shown.length} of {turns.length.toLocaleString("en")} turns.
        </p>
      ) : null}
      <table>
        <thead>
          <tr>
            <th scope="col">Turn</th>
            <th scope="col">Tokens</th>
            <th scope="col" class="number">
              Input
            </th>
            <th scope="col" class="number">
              Output
            </th>
            <th scope="col" class="number">
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ turn, usage }) => (
            <tr key={turn}>
              <th scope="row">{turn}</th>
              <td class="bar-cell">
                <meter min={0} max={most} value={sumOf(usage)} aria-label={`Turn ${turn}: ${sumOf(usage)} tokens`} />
              </td>
              <td class="number">{tokensWords(usage.inputTokens ?? 0)}</td>
              <td class="number">{tokensWords(usage.outputTokens ?? 0)}</td>
              <td class="number">{costsOf(usage)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Figure({ label, value }: { readonly label: string; readonly value: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Table({
  caption,
  head,
  rows,
}: {
  readonly caption: string;
  readonly head: string;
  readonly rows: readonly (readonly [string, Usage])[];
}) {
  if (rows.length === 0) return null;
  return (
    <>
      <h3>{caption}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">{head}</th>
            <th scope="col" class="number">
              Input
            </th>
            <th scope="col" class="number">
              Output
            </th>
            <th scope="col" class="number">
              Cost
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, usage]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{tokensWords(usage.inputTokens ?? 0)}</td>
              <td class="number">{tokensWords(usage.outputTokens ?? 0)}</td>
              <td class="number">{costsOf(usage)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function sumOf({ inputTokens = 0, outputTokens = 0 }: Usage): number {
  return inputTokens + outputTokens;
}

function costsOf({ cost, otherCosts = [] }: Usage): string {
  const all = cost ? [cost, ...otherCosts] : otherCosts;
  return all.length === 0 ? "–" : all.map(costWords).join(" + ");
}
