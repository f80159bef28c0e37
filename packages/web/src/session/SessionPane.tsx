import { sessionStateOf } from "@holdfast/server/internal/contract";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Session, Status } from "../api/wire.ts";
import type { Action } from "../keys/keymap.ts";
import { Dialog } from "../parts/Dialog.tsx";
import { ChangedFiles } from "../side/ChangedFiles.tsx";
import { ComparePanel } from "../side/ComparePanel.tsx";
import { TreePanel } from "../side/TreePanel.tsx";
import { UsagePanel } from "../side/UsagePanel.tsx";
import { epochAt, timeInId } from "../state/epochs.ts";
import type { ItemPages, ItemTarget } from "../state/item-pages.ts";
import type { ListStore } from "../state/list-store.ts";
import { Observable, useValue } from "../state/observable.ts";
import { isOffered } from "../state/parse-route.ts";
import { go, hashOf, route, type Tab } from "../state/route.ts";
import { SessionStore } from "../state/session-store.ts";
import { theme } from "../state/theme.ts";
import { say } from "../state/toasts.ts";
import { Timeline, type TimelineCommand } from "../timeline/Timeline.tsx";
import type { Stretch } from "../timeline/time-scale.ts";
import { AskCard } from "./AskCard.tsx";
import { Actions } from "./actions.ts";
import type { CallFacts } from "./CallCard.tsx";
import { Composer } from "./Composer.tsx";
import { DamageBanner, DamageDialog } from "./DamageReport.tsx";
import { Epochs } from "./Epochs.tsx";
import { Header } from "./Header.tsx";
import { Interrupted } from "./Interrupted.tsx";
import { ReadingBand } from "./ReadingBand.tsx";
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
  const { tab, item: wanted, until } = useValue(route);
  const session = useValue(store.session);
  const items = useValue(store.items);
  const history = useValue(store.history);
  const detail = useValue(store.detail);
  const epochs = useValue(store.epochs);
  const known = useValue(store.facts);
  const pages = store.pagesUntil(until);
  const failure = useValue(store.failure);
  const isConnected = useValue(store.isConnected);
  const isDeleted = useValue(store.isDeleted);
  const live = useValue(store.live);
  const chosenTheme = useValue(theme);
  // Changes in each frame of a scroll, which must not draw the whole pane again.
  const reading = useMemo(() => new Observable<Stretch | null>(null), [id]);
  const [given, setGiven] = useState<{ readonly text: string } | null>(null);
  const [shared, setShared] = useState<string | null>(null);
  const [isChecking, setChecking] = useState(false);
  const timeline = useRef<((command: TimelineCommand) => void) | null>(null);
  const transcript = useRef<TranscriptCommands | null>(null);
  const field = useRef<HTMLTextAreaElement | null>(null);
  /** Where to go once its conversation is shown. */
  const target = useRef<{ readonly pages: ItemPages; readonly index: number } | null>(null);

  useEffect(() => {
    void store.load();
    return () => store.close();
  }, [store]);

  const state = session?.state ?? null;
  const account = state?.account ?? session?.account ?? null;
  const status: Status = statusOf(state, session);
  const interruption = status === "running" ? null : ((state ? state.interruption : session?.interruption) ?? null);
  const isLoaded = session !== null;

  useEffect(() => {
    if (pages.until !== undefined) void pages.ensureFirst();
    const wantedHere = target.current?.pages === pages ? target.current : null;
    if (!wantedHere) return;
    target.current = null;
    requestAnimationFrame(() => transcript.current?.goTo(wantedHere.index));
  }, [pages, tab]);

  const show = (shown: ItemPages, index: number): void => {
    const { tab: open, until: current } = route.value;
    if (open === "conversation" && current === (shown.until ?? null)) {
      requestAnimationFrame(() => transcript.current?.goTo(index));
      return;
    }
    target.current = { pages: shown, index };
    go({ session: id, until: shown.until ?? null });
  };
  /** A message that is not in the current conversation was replaced: it is shown where it was. */
  const goTo = async (place: ItemTarget): Promise<boolean> => {
    const earlier = place.atMs === null ? null : epochAt(store.epochs.value, place.atMs);
    const isExact = place.message !== undefined || place.call !== undefined;
    if (isExact || !earlier) {
      const index = await store.current.find(place, earlier !== null);
      if (index !== null) show(store.current, index);
      if (index !== null || !earlier) return index !== null;
    }
    const replaced = store.pagesUntil(earlier.until);
    const index = await replaced.find(place, false);
    if (index !== null) show(replaced, index);
    return index !== null;
  };
  const arrived = useRef<string | null>(null);
  useEffect(() => {
    if (!wanted || !isLoaded || arrived.current === wanted) return;
    const find = async (): Promise<boolean> => {
      if (until === null) return goTo({ message: wanted, atMs: timeInId(wanted) });
      const index = await pages.find({ message: wanted, atMs: null }, true);
      if (index !== null) show(pages, index);
      return index !== null;
    };
    void find().then((isFound) => {
      if (isFound) arrived.current = wanted;
      // Until the timeline is there, it may be in a conversation that was replaced.
      else if (history !== null) say("This message is no longer in the session.");
    });
  }, [wanted, until, isLoaded, history === null, epochs.length]);

  const goToPrompt = async (step: 1 | -1): Promise<void> => {
    const from = transcript.current?.top ?? 0;
    for (let index = from + step; index >= 0 && index < pages.items.value.length; index += step) {
      await pages.ensureIndex(index);
      if (pages.items.value[index]?.kind !== "prompt") continue;
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
        transcript.current?.goTo(pages.items.value.length - 1);
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
    for (const [call, { startMs, endMs, outcome, child }] of known) {
      const isOver = endMs !== null && (outcome === "done" || outcome === "failed");
      map.set(call, { durationMs: isOver ? endMs - startMs : null, child });
    }
    return map;
  }, [known]);

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

  const isCurrent = until === null;
  const rowActions = mayWrite
    ? {
        fork: isCurrent ? (at: string) => void actions.fork(at) : null,
        rewind: isCurrent ? (message: string) => void actions.rewind(message, (text) => setGiven({ text })) : null,
        copyLink: (item: string) => {
          void navigator.clipboard.writeText(
            `${window.location.origin}${window.location.pathname}${hashOf({ session: id, item, until })}`,
          );
          say("Copied a link to this message.");
        },
      }
    : null;
  const version = `${session.cursor}${items.length}${status}`;
  const prompting = account!.can.prompt;
  const refusal = prompting === true ? null : { words: prompting.words, canTakeOver: account!.can.takeOver === true };
  const isOffline = !isConnected || failure?.code === "UNREACHABLE";
  return (
    <main class="session-pane">
      <Header
        session={session}
        status={isOffline ? null : status}
        actions={mayWrite ? actions : null}
        onShare={setShared}
        onCheck={() => setChecking(true)}
      />
      <p class="for-readers" role="status">
        {isOffline ? "Not connected to the server." : announce(status, state?.asks.length ?? 0, live !== null)}
      </p>
      {isOffline ? (
        <p class="offline" role="alert">
          Not connected to the server. Reconnecting… Whether the agent works on is not known until then.
        </p>
      ) : null}
      {history && history.turns.length > 0 ? (
        <Timeline
          history={history}
          detail={detail}
          onView={(fromMs, toMs) => store.zoomTo(fromMs, toMs)}
          band={(place) => <ReadingBand reading={reading} {...place} />}
          theme={chosenTheme}
          onGo={(place) => void goTo(place)}
          commands={timeline}
        />
      ) : null}
      <div class="tabs" role="tablist" aria-label="Views">
        {TABS.filter(([name]) => isOffered(name, { isOwner: mayWrite, isFork: session.forkedFrom != null })).map(
          ([name, label]) => (
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
          ),
        )}
      </div>
      <div
        class="view"
        id="view"
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        tabIndex={tab === "conversation" ? -1 : 0}
      >
        {tab === "conversation" ? <Epochs session={id} epochs={epochs} until={until} /> : null}
        {tab === "conversation" && !isCurrent ? (
          <Transcript
            key={until}
            pages={pages}
            live={null}
            outputs={NO_OUTPUTS}
            actions={rowActions}
            facts={facts}
            commands={transcript}
            reading={reading}
          />
        ) : tab === "conversation" ? (
          <Transcript
            key="current"
            pages={pages}
            live={live}
            outputs={state?.outputs ?? NO_OUTPUTS}
            actions={rowActions}
            facts={facts}
            commands={transcript}
            reading={reading}
          >
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
              <Interrupted interruption={interruption} account={account!} actions={mayWrite ? actions : null} />
            ) : null}
            {mayWrite ? (state?.asks ?? []).map((ask) => <AskCard key={ask.call} ask={ask} actions={actions} />) : null}
            {items.length === 0 && !live ? (
              <p class="empty">
                Nothing has been said yet.{mayWrite ? " Write a prompt below to start the first turn." : ""}
              </p>
            ) : null}
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
      {!isCurrent ? null : mayWrite ? (
        <Composer
          session={id}
          actions={actions}
          isOffline={isOffline}
          status={status}
          queue={state?.queue ?? session.queue}
          given={given}
          field={field}
          refusal={refusal}
        />
      ) : (
        <p class="read-only">You can read this session, but not change it.</p>
      )}
      {shared ? <ShareDialog address={shared} onClose={() => setShared(null)} /> : null}
      {isChecking ? <DamageDialog id={id} onClose={() => setChecking(false)} /> : null}
    </main>
  );
}

const NO_OUTPUTS: Readonly<Record<string, string>> = {};

function moveInTabs(event: KeyboardEvent): void {
  const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (step === 0) return;
  const all = [...(event.currentTarget as Element).parentElement!.querySelectorAll<HTMLElement>("[role=tab]")];
  const next = all[(all.indexOf(event.currentTarget as HTMLElement) + step + all.length) % all.length]!;
  next.focus();
  next.click();
  event.preventDefault();
}

function statusOf(state: Session["state"], session: Session | null): Status {
  return state ? sessionStateOf(state) : (session?.status ?? "idle");
}

function announce(status: Status, asks: number, isAnswering: boolean): string {
  if (asks > 0)
    return asks === 1
      ? "A tool call is waiting for your approval."
      : `${asks} tool calls are waiting for your approval.`;
  if (status === "running") return isAnswering ? "The model is answering." : "The agent is working.";
  if (status === "idle") return "The agent is idle.";
  if (status === "paused") return "The turn continues by itself.";
  return status === "waiting" ? "The turn is waiting for a person." : `The last turn: ${status}.`;
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
