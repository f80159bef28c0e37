import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Status } from "../api/wire.ts";
import type { Action } from "../keys/keymap.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { ChangedFiles } from "../side/ChangedFiles.tsx";
import { ComparePanel } from "../side/ComparePanel.tsx";
import { TreePanel } from "../side/TreePanel.tsx";
import { UsagePanel } from "../side/UsagePanel.tsx";
import type { ListStore } from "../state/list-store.ts";
import { timeInId } from "../state/locate.ts";
import { useValue } from "../state/observable.ts";
import { go, hashOf, route, type Tab } from "../state/route.ts";
import { SessionStore } from "../state/session-store.ts";
import { theme } from "../state/theme.ts";
import { say } from "../state/toasts.ts";
import { type Place, Timeline, type TimelineCommand } from "../timeline/Timeline.tsx";
import { AskCard } from "./AskCard.tsx";
import { Actions } from "./actions.ts";
import type { CallFacts } from "./CallCard.tsx";
import { Composer } from "./Composer.tsx";
import { DamageBanner, DamageDialog } from "./DamageReport.tsx";
import { Header } from "./Header.tsx";
import { Interrupted } from "./Interrupted.tsx";
import { Transcript, type TranscriptCommands } from "./Transcript.tsx";

interface Props {
  readonly id: string;
  readonly list: ListStore;
  readonly mayWrite: boolean;
  readonly keys: { current: ((action: Action) => void) | null };
}

const TABS: readonly (readonly [tab: Tab, label: string])[] = [
  ["conversation", "Conversation"],
  ["files", "Files"],
  ["usage", "Usage"],
  ["tree", "Sub-agents"],
  ["compare", "Compare"],
];

export function SessionPane({ id, list, mayWrite, keys }: Props) {
  const store = useMemo(() => new SessionStore(id), [id]);
  const actions = useMemo(() => new Actions(id, list), [id, list]);
  const { tab, item: wanted } = useValue(route);
  const session = useValue(store.session);
  const items = useValue(store.items);
  const history = useValue(store.history);
  const failure = useValue(store.failure);
  const isConnected = useValue(store.isConnected);
  const isDeleted = useValue(store.isDeleted);
  const live = useValue(store.live);
  const chosenTheme = useValue(theme);
  const [reading, setReading] = useState<{ readonly fromMs: number; readonly toMs: number } | null>(null);
  const [given, setGiven] = useState<{ readonly text: string } | null>(null);
  const [shared, setShared] = useState<string | null>(null);
  const [isChecking, setChecking] = useState(false);
  const timeline = useRef<((command: TimelineCommand) => void) | null>(null);
  const transcript = useRef<TranscriptCommands | null>(null);
  const field = useRef<HTMLTextAreaElement | null>(null);

  useEffect(() => {
    void store.load();
    return () => store.close();
  }, [store]);

  const state = session?.state ?? null;
  const status: Status = state?.status ?? session?.status ?? "idle";
  const interruption = status === "running" ? null : ((state ? state.interruption : session?.interruption) ?? null);
  const isLoaded = session !== null;

  const goTo = async (
    place: Omit<Place, "turn" | "atMs"> & { readonly turn?: number | null; readonly atMs: number | null },
  ): Promise<void> => {
    if (route.value.tab !== "conversation") go({ session: id });
    const index = await store.find(place);
    if (index === null) return;
    const found = store.items.value[index];
    const isGone = place.atMs !== null && found && index === 0 && Date.parse(found.at) > place.atMs + 1000;
    if (isGone) say("This part is no longer in the conversation: it was replaced. The conversation begins here now.");
    requestAnimationFrame(() => transcript.current?.goTo(index));
  };
  useEffect(() => {
    if (!wanted || !isLoaded) return;
    void goTo({ message: wanted, atMs: timeInId(wanted) });
  }, [wanted, isLoaded]);

  const goToPrompt = async (step: 1 | -1): Promise<void> => {
    const from = transcript.current?.top ?? 0;
    for (let index = from + step; index >= 0 && index < store.items.value.length; index += step) {
      await store.ensureIndex(index);
      if (store.items.value[index]?.kind !== "prompt") continue;
      transcript.current?.goTo(index);
      return;
    }
  };
  keys.current = (action) => {
    switch (action) {
      case "next-prompt":
      case "previous-prompt":
        void goToPrompt(action === "next-prompt" ? 1 : -1);
        break;
      case "first":
        transcript.current?.goTo(0);
        break;
      case "last":
        transcript.current?.goTo(store.items.value.length - 1);
        break;
      case "write":
        field.current?.focus();
        break;
      case "stop":
        if (status === "running" && mayWrite) void actions.stop();
        break;
      case "zoom-in":
      case "zoom-out":
      case "zoom-all":
      case "pan-left":
      case "pan-right":
      case "next-mark":
      case "previous-mark":
        timeline.current?.(action);
        break;
    }
  };

  const facts = useMemo(() => {
    const map = new Map<string, CallFacts>();
    for (const { call, startMs, endMs, outcome, child } of history?.tools ?? []) {
      const isOver = endMs !== null && (outcome === "done" || outcome === "failed");
      map.set(call, { durationMs: isOver ? endMs - startMs : null, child });
    }
    return map;
  }, [history]);

  if (isDeleted)
    return (
      <main class="session-pane">
        <p class="empty">This session was deleted.</p>
      </main>
    );
  if (!session)
    return (
      <main class="session-pane">
        {failure ? (
          <p class="empty" role="alert">
            {failure.message}
          </p>
        ) : (
          <p class="empty">Loading…</p>
        )}
      </main>
    );

  const rowActions = mayWrite
    ? {
        fork: (at: string) => void actions.fork(at),
        rewind: (message: string) => void actions.rewind(message, (text) => setGiven({ text })),
        copyLink: (item: string) => {
          void navigator.clipboard.writeText(
            `${window.location.origin}${window.location.pathname}${hashOf({ session: id, item })}`,
          );
          say("Copied a link to this message.");
        },
      }
    : null;
  const version = `${session.cursor}${items.length}${status}`;
  const isOffline = !isConnected || failure?.code === "UNREACHABLE";
  return (
    <main class="session-pane">
      <Header
        session={session}
        status={status}
        actions={mayWrite ? actions : null}
        onShare={setShared}
        onCheck={() => setChecking(true)}
      />
      <p class="for-readers" role="status">
        {announce(status, state?.asks.length ?? 0, live !== null)}
      </p>
      {isOffline ? (
        <p class="offline" role="alert">
          Not connected to the server. Reconnecting… What the agent does goes on without this page.
        </p>
      ) : null}
      {history && history.turns.length > 0 ? (
        <Timeline
          history={history}
          reading={tab === "conversation" ? reading : null}
          theme={chosenTheme}
          onGo={(place) => void goTo(place)}
          commands={timeline}
        />
      ) : null}
      <div class="tabs" role="tablist" aria-label="Views">
        {TABS.filter(([name]) => name !== "compare" || session.forkedFrom).map(([name, label]) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={tab === name}
            aria-controls="view"
            tabIndex={tab === name ? 0 : -1}
            onClick={() => go({ session: id, tab: name })}
            onKeyDown={moveInTabs}
          >
            {label}
          </button>
        ))}
      </div>
      <div
        class="view"
        id="view"
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        tabIndex={tab === "conversation" ? -1 : 0}
      >
        {tab === "conversation" ? (
          <Transcript store={store} actions={rowActions} facts={facts} commands={transcript} onRead={setReading}>
            <DamageBanner
              damage={state?.damage ?? session.damage}
              onCheck={mayWrite ? () => setChecking(true) : null}
            />
            {state?.failure ? (
              <section class="failure" role="alert">
                <h2>{state.failure.code}</h2>
                <p>{state.failure.message}</p>
              </section>
            ) : null}
            {interruption && (state?.asks.length ?? 0) === 0 ? (
              <Interrupted
                interruption={interruption}
                actions={mayWrite && (session.here || !session.holder) ? actions : null}
              />
            ) : null}
            {mayWrite ? (state?.asks ?? []).map((ask) => <AskCard key={ask.call} ask={ask} actions={actions} />) : null}
            {items.length === 0 && !live ? <p class="empty">Nothing has been said yet.</p> : null}
          </Transcript>
        ) : tab === "files" ? (
          <ChangedFiles id={id} version={version} />
        ) : tab === "usage" ? (
          <UsagePanel id={id} version={version} />
        ) : tab === "tree" ? (
          <TreePanel id={id} version={version} />
        ) : (
          <ComparePanel fork={session} />
        )}
      </div>
      {mayWrite ? (
        <Composer actions={actions} status={status} queue={state?.queue ?? session.queue} given={given} field={field} />
      ) : (
        <p class="read-only">You can read this session, but not change it.</p>
      )}
      {shared ? <ShareDialog address={shared} onClose={() => setShared(null)} /> : null}
      {isChecking ? <DamageDialog id={id} onClose={() => setChecking(false)} /> : null}
    </main>
  );
}

function moveInTabs(event: KeyboardEvent): void {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (step === 0) return;
  const all = [...(event.currentTarget as Element).parentElement!.querySelectorAll<HTMLElement>("[role=tab]")];
  const next = all[(all.indexOf(event.currentTarget as HTMLElement) + step + all.length) % all.length]!;
  next.focus();
  next.click();
  event.preventDefault();
}

function announce(status: Status, asks: number, isAnswering: boolean): string {
  if (asks > 0)
    return asks === 1 ? "A tool call waits for your approval." : `${asks} tool calls wait for your approval.`;
  if (status === "running") return isAnswering ? "The model is answering." : "The agent is working.";
  return status === "interrupted"
    ? "The last turn was interrupted."
    : status === "waiting"
      ? "The turn waits for a person."
      : "The agent is idle.";
}

function ShareDialog({ address, onClose }: { readonly address: string; readonly onClose: () => void }) {
  return (
    <Dialog title="Share a read-only link" onClose={onClose}>
      <p>
        With this link, somebody who can reach this server can read this session, and nothing else. It is shown only
        once.
      </p>
      <input
        class="share-link"
        readOnly
        value={address}
        aria-label="Link"
        onFocus={(event) => event.currentTarget.select()}
      />
      <div class="buttons">
        <button
          type="button"
          class="button button-main"
          onClick={() => {
            void navigator.clipboard.writeText(address);
            say("Copied the link.");
            onClose();
          }}
        >
          Copy the link
        </button>
      </div>
    </Dialog>
  );
}
