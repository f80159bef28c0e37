import { openFolderStore } from "holdfast/internal";
import type { Durability } from "holdfast/store";
import { openStoreWith } from "holdfast/store";
import { hastyDisk } from "../../fixtures.ts";
import { sessionStore } from "../../sessions.ts";
import type { LoadStore, PeerStore } from "../contract.ts";
import { anthropicForm } from "../turns.ts";

/** `hasty` is for making fixtures: it does not sync, not even when a session is created. */
export function loadHoldfast(durability: Durability, hasty = false): LoadStore {
  return async () =>
    async (folder): Promise<PeerStore> => {
      const store = hasty
        ? await openStoreWith((options) => openFolderStore(folder, { ...options, disk: hastyDisk }), { durability })
        : await sessionStore(folder, durability);
      return {
        create: async (title) => {
          const session = await store.create<unknown>({ dialect: "anthropic", title });
          return {
            id: session.id,
            prepare: ({ pieces }) => {
              const [prompt, ...rest] = pieces.map(anthropicForm);
              return async () => {
                const turn = await session.startTurn(prompt);
                for (const message of rest) await turn.append(message);
                await turn.end();
              };
            },
            close: () => session.close(),
          };
        },
        resume: async (id) => {
          const session = await store.resume(id);
          const { messages } = session;
          return { messages: messages.length, kept: [session, messages] };
        },
        list: async () => {
          const { sessions } = await store.list({ limit: 1_000_000 });
          return sessions.length;
        },
        close: () => store.close(),
      };
    };
}
