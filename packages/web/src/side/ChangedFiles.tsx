import { useState } from "preact/hooks";
import type { Changes, FileChanges } from "../api/wire.ts";
import { Diff, DiffCounts } from "../parts/Diff.tsx";
import { Icon } from "../parts/Icon.tsx";
import { go } from "../state/route.ts";
import { countWords } from "../text/durations.ts";
import { visible } from "../text/visible.ts";
import { useLoaded } from "./use-loaded.ts";

/** The files that the session changed, each with its changes in order. */
export function ChangedFiles({ id, version }: { readonly id: string; readonly version: unknown }) {
  const { value, failure } = useLoaded<Changes>(`/sessions/${id}/changes`, version);
  if (failure)
    return (
      <p class="empty" role="alert">
        {failure}
      </p>
    );
  if (!value) return <p class="empty">Loading…</p>;
  if (value.files.length === 0) return <p class="empty">This session has changed no files.</p>;
  const isOnly = value.files.length <= 3;
  return (
    <div class="panel changed">
      <h2>{countWords(value.files.length, "changed file")}</h2>
      <p class="hint">From the edits in the conversation. Changes made by commands are not listed.</p>
      {value.files.map((file) => (
        <ChangedFile key={file.path} id={id} file={file} isOpenAtFirst={isOnly} />
      ))}
    </div>
  );
}

function ChangedFile({
  id,
  file,
  isOpenAtFirst,
}: {
  readonly id: string;
  readonly file: FileChanges;
  readonly isOpenAtFirst: boolean;
}) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const rows = file.changes.flatMap((change) => change.rows);
  const cut = file.path.lastIndexOf("/") + 1;
  return (
    <section class="changed-file">
      <h3>
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name={isOpen ? "down" : "right"} />
          <span class="path">
            <span class="path-folder">{visible(file.path.slice(0, cut))}</span>
            {visible(file.path.slice(cut))}
          </span>
          <DiffCounts rows={rows} />
          <span class="hint">{countWords(file.changes.length, "change")}</span>
        </button>
      </h3>
      {isOpen
        ? file.changes.map((change) => (
            <div key={change.item + change.call} class="change">
              <div class="change-head">
                <button type="button" class="link-button" onClick={() => go({ session: id, item: change.item })}>
                  Turn {change.turn}
                </button>
                <time class="hint" dateTime={change.at}>
                  {new Date(change.at).toLocaleString("en", { hour12: false })}
                </time>
                {change.state === "done" ? null : (
                  <span class="state-unknown">
                    {change.state === "unknown" ? "may have been made: outcome unknown" : `not made: ${change.state}`}
                  </span>
                )}
              </div>
              <Diff rows={change.rows} max={60} />
            </div>
          ))
        : null}
    </section>
  );
}
