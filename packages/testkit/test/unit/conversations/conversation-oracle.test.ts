import type { JournalRecord, Reading } from "holdfast";
import { describe, expect, test } from "vitest";
import type { AgentEvent, Op } from "../../../src/conversations/events.ts";
import { historyFaults } from "../../../src/conversations/judge-history.ts";
import { toolFaults } from "../../../src/conversations/judge-tools.ts";
import { viewFaults } from "../../../src/conversations/judge-views.ts";
import { Log } from "../../../src/conversations/log.ts";
import { type Message, voiceOf } from "../../../src/conversations/voices.ts";

const voice = voiceOf("openai-chat");
const said = (text: string): Message => voice.said("", text);
const prompt = voice.user("second");
const first = [voice.user("first"), said("one")];
const second = [prompt, said("two")];

const start = (id: string, message: Message): Op => ({ do: "start", id, message, queued: false });
const hide: Op = { do: "patch", id: "first", key: "k", value: "v", hides: true };
const asked = (view: readonly Message[]): AgentEvent => ({ e: "asked", view, settled: true });

/** What agents told, a list for each life. A call that is followed by "died" has no answer. */
function logOf(...lives: readonly (readonly (Op | AgentEvent | "died")[])[]): Log {
  const log = new Log();
  for (const life of lives) {
    log.nextLife();
    for (const [n, one] of life.entries()) {
      if (one === "died") continue;
      if ("e" in one) log.hear(one);
      else {
        log.hear({ e: "try", n, op: one });
        if (life[n + 1] !== "died") log.hear({ e: "ok", n });
      }
    }
  }
  return log;
}

function kindsOf(log: Log, messages: readonly Message[]): string[] {
  const reading = { messages, interruption: null } as unknown as Reading<Message>;
  return viewFaults({ log, voice, reading, draftMs: 0, history: [], effects: [] }).map(({ what }) => what);
}

describe("C35, as the oracle judges it: the past changes when the application changed it, at the start of a turn", () => {
  const before = asked([...first, prompt]);
  const third = voice.user("third");
  const after = [...second, third];

  test("hidden before a prompt that is recorded already and sent again: that turn is resumed, and the next one brings the change", () => {
    const lives = [
      [start("second", prompt), "died"],
      [hide, start("second", prompt), before, start("third", third), asked(after)],
    ] as const;
    expect(kindsOf(logOf(...lives), after)).toEqual([]);
  });

  test("hidden before a turn, whose first request shows the change: it may not change again at the next", () => {
    const life = [hide, start("second", prompt), before, start("third", third), asked(after)];
    expect(kindsOf(logOf(life), after)).toEqual(["past"]);
  });

  test("nothing was hidden: nothing may change", () => {
    const lives = [
      [start("second", prompt), "died"],
      [start("second", prompt), before, start("third", third), asked(after)],
    ] as const;
    expect(kindsOf(logOf(...lives), after)).toEqual(["past"]);
  });
});

describe("P4, as the oracle judges it: every request is accepted", () => {
  test("one that asks nothing is not, unless the application hid or dropped all that there was", () => {
    expect(kindsOf(logOf([start("second", prompt), asked([])]), second)).toEqual(["refused"]);
    expect(kindsOf(logOf([start("second", prompt), hide, asked([])]), second)).toEqual([]);
  });
});

describe("R2, as the oracle judges it: what comes back ends where a request may end", () => {
  const anthropic = voiceOf("anthropic");
  const judged = (draft: object | null): string[] => {
    const messages = [anthropic.user("first"), anthropic.said("", "one")];
    const reading = { messages, interruption: { answered: false, draft } } as unknown as Reading<Message>;
    const evidence = { log: logOf([]), voice: anthropic, reading, draftMs: 0, history: [], effects: [] };
    return viewFaults(evidence).map(({ what }) => what);
  };

  test("an answer is the end only where the library says that it is one, or that words were streamed behind it", () => {
    expect(judged(null)).toEqual(["refused"]);
    expect(judged({ text: "two" })).toEqual([]);
  });
});

describe("R15, as the oracle judges it: what is recorded under an id is recorded once", () => {
  const kindsIn = (...records: readonly object[]): string[] => {
    const history = records.map(
      (record, at) => ({ seq: at + 1, at: "", crc: "", ...record }) as unknown as JournalRecord,
    );
    const log = logOf([start("second", prompt), "died"], [start("second", prompt)]);
    const reading = { messages: second, interruption: null, queue: [], entries: [] } as unknown as Reading<Message>;
    return historyFaults({ log, voice, reading, draftMs: 0, history, effects: [] }).map(({ what }) => what);
  };
  const told = { kind: "message", id: "second", message: prompt };
  const epoch = { kind: "epoch" };

  test("twice in one epoch, also if the epoch brought the first one along", () => {
    expect(kindsIn(told, told)).toContain("twice");
    expect(kindsIn(told, epoch, { ...told, carried: true }, told)).toContain("twice");
  });

  test("dropped by a replacement, and sent again", () => {
    expect(kindsIn(told, epoch, told)).not.toContain("twice");
  });
});

describe("R6, as the oracle judges it: an outcome is recorded once", () => {
  const ended: Op = { do: "toolEnded", message: "a", call: "c", mark: "«r1.1»", late: false };
  const end = (id: string): object => ({ kind: "tool.ended", id, call: "c", value: "«r1.1» done" });
  const kindsIn = (...history: readonly object[]): string[] => {
    const reading = {} as unknown as Reading<Message>;
    const evidence = {
      log: logOf([ended]),
      voice,
      reading,
      draftMs: 0,
      history: history as JournalRecord[],
      effects: [],
    };
    return toolFaults(evidence).map(({ what }) => what);
  };

  test("not twice; but one whose call is not recorded yet goes along into an epoch", () => {
    expect(kindsIn()).toEqual(["lost"]);
    expect(kindsIn(end("1"), end("2"))).toEqual(["twice"]);
    expect(kindsIn(end("1"), { kind: "epoch" }, end("1"))).toEqual([]);
  });
});
