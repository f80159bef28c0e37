import { patch, post, remove, urlOf } from "../api/http.ts";
import type { PromptImage, Session, Share } from "../api/wire.ts";
import type { ListStore } from "../state/list-store.ts";
import { go } from "../state/route.ts";
import { attempt, say } from "../state/toasts.ts";

/** What a person can do to a session. Each says what it did, and offers to undo it where that is possible. */
export class Actions {
  readonly id: string;
  readonly #list: ListStore;

  constructor(id: string, list: ListStore) {
    this.id = id;
    this.#list = list;
  }

  prompt(text: string, images: readonly PromptImage[]): Promise<boolean> {
    return attempt(
      () => post<{ outcome: string }>(`/sessions/${this.id}/turns`, { text, images }),
      ({ outcome }) => {
        if (outcome === "queued") say("Queued: it starts when the running turn ends.");
      },
    );
  }

  stop(): Promise<boolean> {
    return attempt(() => post(`/sessions/${this.id}/turns/stop`));
  }

  finish(processes: "wait" | "stop"): Promise<boolean> {
    return attempt(() => post(`/sessions/${this.id}/turns/finish`, { processes }));
  }

  leave(): Promise<boolean> {
    return attempt(
      () => post(`/sessions/${this.id}/turns/leave`),
      () => say("Left as it is. Your next prompt tells the model what happened."),
    );
  }

  /** Continue a session that another program wrote. */
  takeOver(): Promise<boolean> {
    return attempt(() => post(`/sessions/${this.id}/open`, { takeOver: true }));
  }

  answer(call: string, answer: string, digest: string, reason?: string): Promise<boolean> {
    return attempt(() =>
      post(`/sessions/${this.id}/permissions`, { call, answer, digest, ...(reason ? { reason } : {}) }),
    );
  }

  withdraw(queued: string): Promise<boolean> {
    return attempt(() => remove(`/sessions/${this.id}/queue/${encodeURIComponent(queued)}`));
  }

  resumeQueue(): Promise<boolean> {
    return attempt(() => post(`/sessions/${this.id}/queue/resume`));
  }

  fork(at?: string): Promise<boolean> {
    return attempt(
      () => post<Session>(`/sessions/${this.id}/fork`, at === undefined ? {} : { at }),
      ({ id }) => {
        say("Forked: you are in the new session.", {
          label: "Back to the source",
          run: () => go({ session: this.id }),
        });
        void this.#list.refresh();
        go({ session: id });
      },
    );
  }

  rename(title: string): Promise<boolean> {
    return attempt(
      () => patch(`/sessions/${this.id}`, { title }),
      () => void this.#list.refresh(),
    );
  }

  /** Gives the removed prompt back, for editing. */
  rewind(message: string, onPrompt: (text: string) => void): Promise<boolean> {
    return attempt(
      () => post<{ prompt: string }>(`/sessions/${this.id}/rewind`, { message }),
      ({ prompt }) => {
        onPrompt(prompt);
        say("Removed this prompt and everything after it.", this.#undo());
      },
    );
  }

  compact(): Promise<boolean> {
    return attempt(
      () => post(`/sessions/${this.id}/compact`),
      () => say("Compacted the conversation.", this.#undo()),
    );
  }

  clear(): Promise<boolean> {
    return attempt(
      () => post(`/sessions/${this.id}/clear`),
      () => say("Cleared the conversation.", this.#undo()),
    );
  }

  undo(): Promise<boolean> {
    return attempt(
      () => post(`/sessions/${this.id}/undo`),
      () => say("Undone: the earlier conversation is back."),
    );
  }

  #undo(): { label: string; run: () => void } {
    return { label: "Undo", run: () => void this.undo() };
  }

  delete(title: string): Promise<boolean> {
    return attempt(
      () => remove(`/sessions/${this.id}`),
      () => {
        this.#list.forget(this.id);
        go({});
        say(`Moved “${title || "the session"}” to the trash.`, {
          label: "Undo",
          run: () =>
            void attempt(
              () => post(`/sessions/${this.id}/restore`),
              () => {
                void this.#list.refresh();
                go({ session: this.id });
              },
            ),
        });
      },
    );
  }

  share(onShare: (address: string) => void): Promise<boolean> {
    return attempt(
      () => post<Share>(`/sessions/${this.id}/shares`),
      ({ token }) => {
        const { origin, pathname } = window.location;
        onShare(`${origin}${pathname}#token=${token}&to=${encodeURIComponent(`/${this.id}`)}`);
      },
    );
  }

  download(format: "markdown" | "html" | "jsonl" | "messages", redact: boolean): void {
    const link = document.createElement("a");
    link.href = urlOf(`/sessions/${this.id}/export`, { format, redact: String(redact) });
    link.download = `${this.id}.${{ markdown: "md", html: "html", jsonl: "jsonl", messages: "json" }[format]}`;
    link.click();
  }
}
