import { refuse } from "../access/request-error.ts";
import type { Handlers } from "./context.ts";

const DONE = { status: 204 } as const;

export const turnHandlers: Handlers<
  | "startTurn"
  | "stopTurn"
  | "finishTurn"
  | "leaveTurn"
  | "getQueue"
  | "withdrawPrompt"
  | "resumeQueue"
  | "getPermissions"
  | "answerPermission"
  | "compact"
  | "clear"
  | "undo"
  | "rewind"
> = {
  startTurn: ({ params: { id }, body: { text, images, key } }, { hosting }) => {
    return hosting.start(id, async (chat) => ({
      status: 202,
      body: { outcome: await chat.prompt(text, images, key) },
    }));
  },
  stopTurn: async ({ params: { id } }, { hosting }) => {
    // Only a turn that runs here can be stopped here: opening another session would change nothing for it.
    if (!hosting.feed(id)) await hosting.host.sessions.read(id);
    else await hosting.use(id, (chat) => chat.stop());
    return DONE;
  },
  finishTurn: ({ params: { id }, body: { processes } }, { hosting }) => {
    return hosting.start(id, async (chat) => {
      await chat.finish({ processes });
      return { status: 202, body: { outcome: "started" } };
    });
  },
  leaveTurn: ({ params: { id } }, { hosting }) =>
    hosting.use(id, (chat) => {
      chat.leave();
      return DONE;
    }),
  getQueue: async ({ params: { id } }, { hosting }) => {
    const feed = hosting.feed(id);
    const queue = feed ? feed.chat.state.queue : hosting.host.queue(await hosting.host.sessions.read(id));
    return { status: 200, body: { queue } };
  },
  withdrawPrompt: ({ params: { id, item } }, { hosting }) =>
    hosting.use(id, async (chat) => {
      await chat.withdraw(item);
      return DONE;
    }),
  resumeQueue: ({ params: { id } }, { hosting }) => {
    return hosting.start(id, async (chat) => {
      await chat.resumeQueue();
      return DONE;
    });
  },
  getPermissions: async ({ params: { id } }, { hosting }) => {
    // Opening an unfinished session asks its questions again, and those of its sub-agents.
    if (!hosting.feed(id)) {
      const { can } = await hosting.host.account(await hosting.host.sessions.read(id));
      if (can.finish !== true) return { status: 200, body: { asks: [] } };
    }
    return hosting.use(id, (chat) => ({ status: 200, body: { asks: chat.state.asks } }));
  },
  answerPermission: ({ params: { id }, body: { call, answer, reason, digest } }, { hosting }) =>
    hosting.use(id, async (chat) => {
      const ask = chat.state.asks.find((one) => one.call === call);
      if (ask && digest !== undefined && digest !== ask.digest)
        throw refuse(
          "ALREADY_ANSWERED",
          "The question is another one by now: the call, or the file it is about, has changed. Nothing was answered. Look at the new question.",
          { digest: ask.digest },
        );
      await chat.answer(call, answer, reason);
      return DONE;
    }),
  compact: ({ params: { id } }, { hosting }) => {
    return hosting.start(id, async (chat) => {
      await chat.compact();
      return DONE;
    });
  },
  clear: ({ params: { id } }, { hosting }) =>
    hosting.use(id, async (chat) => {
      await chat.clear();
      return DONE;
    }),
  undo: ({ params: { id } }, { hosting }) =>
    hosting.use(id, async (chat) => {
      await chat.undo();
      return DONE;
    }),
  rewind: ({ params: { id }, body: { message } }, { hosting }) =>
    hosting.use(id, async (chat) => ({ status: 200, body: { prompt: await chat.rewind(message) } })),
};
