import { useEffect, useRef, useState } from "preact/hooks";
import type { Session, Status } from "../api/wire.ts";
import { StatusChip } from "../parts/Chip.tsx";
import { Icon } from "../parts/Icon.tsx";
import { Menu, type MenuEntry } from "../parts/Menu.tsx";
import { hashOf } from "../state/route.ts";
import { costWords, tokensWords } from "../text/durations.ts";
import type { Actions } from "./actions.ts";

interface Props {
  readonly session: Session;
  /** Null while the server cannot be reached. */
  readonly status: Status | null;
  /** Null for someone who may only read. */
  readonly actions: Actions | null;
  readonly onShare: (address: string) => void;
  readonly onCheck: () => void;
}

export function Header({ session, status, actions, onShare, onCheck }: Props) {
  const { state, usage, cwd, app } = session;
  const { stop } = (state?.account ?? session.account).can;
  const [isRenaming, setRenaming] = useState(false);
  const shownUsage = state?.usage ?? usage;
  const tokens = (shownUsage.inputTokens ?? 0) + (shownUsage.outputTokens ?? 0);
  const window = state?.window;
  return (
    <header class="session-head">
      <a class="icon-button back" href="#/" aria-label="Back to the list">
        <Icon name="back" />
      </a>
      <div class="session-title">
        {isRenaming && actions ? (
          <Rename
            title={session.title}
            onDone={(title) => {
              setRenaming(false);
              if (title !== null && title !== session.title) void actions.rename(title);
            }}
          />
        ) : (
          <h1 dir="auto">{session.title || "(no title)"}</h1>
        )}
        <p class="session-meta">
          {status ? <StatusChip status={status} /> : <span class="chip">Not connected</span>}
          {cwd ? (
            <span title={cwd}>
              <Icon name="folder" />
              {cwd.split(/[\\/]/).at(-1)}
            </span>
          ) : null}
          {state?.model ? <span>{state.model}</span> : app ? <span>{app}</span> : null}
          {tokens > 0 ? (
            <span title={`${tokens.toLocaleString("en")} tokens`}>
              {tokensWords(tokens)} tokens{shownUsage.cost ? ` · ${costWords(shownUsage.cost)}` : ""}
            </span>
          ) : null}
          {window && window.maxTokens > 0 ? (
            <span class="window">
              context{" "}
              <meter
                min={0}
                max={window.maxTokens}
                value={window.usedTokens}
                aria-label={`${Math.round((100 * window.usedTokens) / window.maxTokens)}% of the context window is used`}
              />
            </span>
          ) : null}
          {session.parent ? (
            <a href={hashOf({ session: session.parent.session })}>sub-agent of another session</a>
          ) : null}
          {session.forkedFrom ? (
            <a href={hashOf({ session: session.id, tab: "compare" })}>
              <Icon name="fork" />
              fork
            </a>
          ) : null}
          {stop !== true && stop.no === "held-by" ? <span class="held">{stop.words}</span> : null}
        </p>
      </div>
      {actions ? (
        <div class="session-tools">
          <button type="button" class="button hide-small" onClick={() => void actions.fork()}>
            <Icon name="fork" />
            Fork
          </button>
          <Menu label="Export" class="button hide-small" entries={exportsOf(actions)}>
            Export
            <Icon name="down" />
          </Menu>
          <Menu
            label="More actions"
            entries={entriesFor(session, actions, () => setRenaming(true), onShare, onCheck)}
          />
        </div>
      ) : null}
    </header>
  );
}

function Rename({ title, onDone }: { readonly title: string; readonly onDone: (title: string | null) => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  return (
    <input
      ref={field}
      class="rename"
      aria-label="Title"
      defaultValue={title}
      onBlur={(event) => onDone(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter") onDone(event.currentTarget.value);
        else if (event.key === "Escape") onDone(null);
        else return;
        event.stopPropagation();
      }}
    />
  );
}

function exportsOf(actions: Actions): MenuEntry[] {
  return [
    { label: "Markdown", run: () => actions.download("markdown", false) },
    { label: "Web page", run: () => actions.download("html", false) },
    { label: "Journal (JSONL)", run: () => actions.download("jsonl", false) },
    { label: "Messages for the model (JSON)", run: () => actions.download("messages", false) },
    { label: "Markdown, without credentials", run: () => actions.download("markdown", true) },
    { label: "Web page, without credentials", run: () => actions.download("html", true) },
  ];
}

function entriesFor(
  session: Session,
  actions: Actions,
  onRename: () => void,
  onShare: (address: string) => void,
  onCheck: () => void,
): MenuEntry[] {
  const entries: MenuEntry[] = [
    { label: "Rename", icon: "file", run: onRename },
    { label: "Fork", icon: "fork", run: () => void actions.fork() },
    { label: "Export as Markdown", icon: "file", run: () => actions.download("markdown", false) },
    { label: "Share a read-only link", icon: "right", run: () => void actions.share(onShare) },
  ];
  if (session.state?.canUndo)
    entries.push({ label: "Undo the last compaction, clear or rewind", icon: "fold", run: () => void actions.undo() });
  entries.push(
    { label: "Compact the conversation", icon: "fold", run: () => void actions.compact() },
    { label: "Clear the conversation", icon: "close", run: () => void actions.clear() },
    { label: "Check for damage", icon: "wrench", run: onCheck },
    { label: "Delete", icon: "cross", isDangerous: true, run: () => void actions.delete(session.title) },
  );
  return entries;
}
