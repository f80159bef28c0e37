import type { CallAccount } from "holdfast";
import type { ChatState, InterruptionShown, UnfinishedSession } from "../../host/host.ts";
import { ago } from "../../terminal/index.ts";
import { callSummary, excerpt } from "../lines/labels.ts";
import { cut, line, wrap } from "../lines/line.ts";
import { interruptionFacts } from "./interruption.ts";
import { type Choice, type Panel, survivingPid } from "./panel.ts";

/** Shown before anything else: the last session of this folder was left unfinished. */
export function offerPanel(found: UnfinishedSession): Panel {
  const { id, interruption, queue } = found;
  const pid = survivingPid(interruption);
  const continuing: Choice[] =
    pid === undefined
      ? [{ key: "c", word: "continue", label: "continue it", act: { do: "continue", id } }]
      : [
          {
            ...{ key: "c", word: "continue", label: `continue it: wait for process ${pid}` },
            act: { do: "continue", id, processes: "wait" },
          },
          {
            ...{ key: "k", word: "stop", label: `continue it: stop process ${pid} first` },
            act: { do: "continue", id, processes: "stop" },
          },
        ];
  return {
    about: `offer:${id}`,
    isQuestion: true,
    placeholder: "Enter continues it, n starts a new session",
    choices: [
      ...continuing,
      { key: "n", word: "new", label: "start a new session; this one stays as it is", act: { do: "startNew" } },
      ...(interruption === null
        ? []
        : [{ key: "s", word: "show", label: "show it", act: { do: "show", interruption } } as const]),
      { key: "l", word: "list", label: "list all sessions", act: { do: "listSessions" } },
    ],
    lines: (columns, rowsMax, now) => {
      const head = wrap(line(offerWords(found, now), { bold: true, colour: "yellow" }), columns);
      const queued = queue.map((text) => cut(line(`  queued: ${excerpt(text, columns)}`, { dim: true }), columns));
      const facts = interruption === null ? [] : interruptionFacts(interruption, columns, rowsMax - head.length);
      return [...head, ...facts, ...queued].slice(0, Math.max(head.length, rowsMax));
    },
  };
}

/** What was left, as a sentence. */
export function offerWords({ account, at, queue, interruption }: UnfinishedSession, now: number): string {
  const when = ago(interruption?.at ?? at, now);
  if (interruption === null) {
    const count = queue.length === 1 ? "a queued prompt" : `${queue.length} queued prompts`;
    return `A session here has ${count}, last written ${when}.`;
  }
  const where = placeWords(interruption);
  if (account.state === "waiting") return `A session here is waiting for your approval, asked ${when}${where}.`;
  if (account.state === "failed") return `A session here, ${when}, ${excerpt(interruption.words, 200)}`;
  if (account.state === "paused" || account.state === "parked")
    return `A session here, ${when}: ${excerpt(interruption.words, 200)}.`;
  return `A session here was ${account.state} ${when}${where}.`;
}

/** Where it stopped: in a call, or in its answer. */
function placeWords({ calls, text }: InterruptionShown): string {
  const call = calls.find(({ effect }) => effect === "possible") ?? calls[0];
  if (call !== undefined) return `, in \`${commandWords(call)}\``;
  return text.trim() === "" ? "" : ", in the middle of its answer";
}

function commandWords(call: CallAccount): string {
  const words = callSummary(call);
  return excerpt(call.name === "shell" ? words : `${call.name} ${words}`, 60);
}

/** Stands in for the state of a chat that is not open yet. */
export function offerState({ id, title, cwd, account, interruption }: UnfinishedSession): ChatState {
  return {
    ...{ id, title, cwd, model: "", items: [], live: null, outputs: {}, asks: [], queue: [], interruption },
    ...{ status: "idle", account, usage: {}, failure: null, damage: [] },
    ...{ window: { usedTokens: 0, maxTokens: 0 }, mode: "ask", canUndo: false, isCompacting: false, isBusy: false },
  };
}
