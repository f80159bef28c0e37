import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { post, type Refusal } from "./api/http.ts";
import type { Server, Session } from "./api/wire.ts";
import { type Action, actionFor, SHORTCUTS } from "./keys/keymap.ts";
import { type ListCommands, ListPane } from "./list/ListPane.tsx";
import { Dialog } from "./parts/Dialog.tsx";
import { SessionPane } from "./session/SessionPane.tsx";
import { ListStore } from "./state/list-store.ts";
import { useValue } from "./state/observable.ts";
import { go, route } from "./state/route.ts";
import { toggleTheme } from "./state/theme.ts";
import { attempt } from "./state/toasts.ts";
import { Toasts } from "./Toasts.tsx";

export function App({ server }: { readonly server: Server }) {
  const list = useMemo(() => new ListStore(), []);
  const { session } = useValue(route);
  const mayWrite = server.access === "owner";
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isNewOpen, setNewOpen] = useState(false);
  const commands = useRef<ListCommands | null>(null);
  const keys = useRef<((action: Action) => void) | null>(null);
  const shown = mayWrite ? session : server.session;

  useEffect(() => {
    if (mayWrite) void list.load();
  }, [list, mayWrite]);

  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
      const target = event.target as HTMLElement;
      const isTyping = target.matches("textarea, select, input:not([type=checkbox])");
      const isOnControl = target.matches("button, a, summary, [role=menuitem], [role=tab], [role=option]");
      const action = actionFor(
        { key: event.key, ctrlKey: event.ctrlKey, metaKey: event.metaKey, altKey: event.altKey, isTyping, isOnControl },
        shown !== null,
      );
      if (action === null) return;
      event.preventDefault();
      if (action === "help") setHelpOpen(true);
      else if (action === "theme") toggleTheme();
      else if (action === "search") commands.current?.focusSearch();
      else if (action === "next-session") commands.current?.move(1);
      else if (action === "previous-session") commands.current?.move(-1);
      else if (action === "open-session") commands.current?.openSelected();
      else if (action === "back") {
        if (isTyping) target.blur();
        else if (mayWrite) go({});
      } else keys.current?.(action);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [shown, mayWrite]);

  return (
    <div class={`app${shown ? " has-session" : ""}${mayWrite ? "" : " is-shared"}`}>
      {mayWrite ? (
        <ListPane list={list} commands={commands} onNew={() => setNewOpen(true)} onHelp={() => setHelpOpen(true)} />
      ) : null}
      {shown ? (
        <SessionPane key={shown} id={shown} list={list} mayWrite={mayWrite} keys={keys} />
      ) : (
        <Welcome server={server} />
      )}
      <Toasts />
      {isHelpOpen ? <Help onClose={() => setHelpOpen(false)} /> : null}
      {isNewOpen ? (
        <NewSession server={server} onClose={() => setNewOpen(false)} onCreated={() => void list.refresh()} />
      ) : null}
    </div>
  );
}

function Welcome({ server }: { readonly server: Server }) {
  return (
    <main class="welcome">
      <img src="./icon.svg" alt="" width="56" height="56" />
      <h1>What did the agent do, and what was lost?</h1>
      <p>Choose a session to see its timeline, its messages, and anything that was interrupted.</p>
      <p class="hint">
        Press <kbd>j</kbd> and <kbd>k</kbd> to move in the list, <kbd>/</kbd> to search, <kbd>?</kbd> for all keys.
      </p>
      {server.warnings.length > 0 ? (
        <ul class="warnings">
          {server.warnings.map((words) => (
            <li key={words}>{words}</li>
          ))}
        </ul>
      ) : null}
      <p class="hint store">
        {server.store} · Holdfast {server.version}
      </p>
    </main>
  );
}

function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="keys">
        {SHORTCUTS.map(({ keys, words }) => (
          <div key={words}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Ctrl</kbd>+wheel
          </dt>
          <dd>Zoom the timeline where the pointer is; drag it to move</dd>
        </div>
      </dl>
    </Dialog>
  );
}

function NewSession({
  server,
  onClose,
  onCreated,
}: {
  readonly server: Server;
  readonly onClose: () => void;
  readonly onCreated: () => void;
}) {
  const [cwd, setCwd] = useState(server.cwd ?? "");
  const [model, setModel] = useState(server.models?.default ?? "");
  const [finishes, setFinishes] = useState(false);
  const create = (): void =>
    void attempt(
      () =>
        post<Session>("/sessions", {
          cwd,
          ...(model.trim() === "" ? {} : { model: model.trim() }),
          finishAfterRestart: finishes,
        }),
      ({ id }) => {
        onClose();
        onCreated();
        go({ session: id });
      },
    );
  return (
    <Dialog title="New session" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          create();
        }}
      >
        <label>
          Folder
          <input value={cwd} required onInput={(event) => setCwd(event.currentTarget.value)} />
        </label>
        <label>
          Model
          <input value={model} placeholder="provider/name" onInput={(event) => setModel(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={finishes} onChange={(event) => setFinishes(event.currentTarget.checked)} />
          Finish interrupted turns automatically after a server restart
        </label>
        <div class="buttons">
          <button type="submit" class="button button-main">
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Shown in place of the page if the server refuses: no token, or no server. */
export function Refused({ refusal }: { readonly refusal: Refusal }) {
  const isUnknown = refusal.status === 401 || refusal.status === 403;
  return (
    <main class="welcome">
      <img src="./icon.svg" alt="" width="56" height="56" />
      <h1>{isUnknown ? "This page needs its token" : "The server does not answer"}</h1>
      <p>
        {isUnknown
          ? "Open the address that the server printed when it started, or run holdfast serve --open."
          : refusal.message}
      </p>
      {isUnknown ? null : (
        <button type="button" class="button button-main" onClick={() => window.location.reload()}>
          Try again
        </button>
      )}
    </main>
  );
}
