import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { openStore, type Store } from "holdfast";
import { expect } from "vitest";
import { makeServer } from "../src/mcp-server/tools.ts";

export interface Lookup extends AsyncDisposable {
  readonly store: Store;
  readonly client: Client;
  /** The text of the answer; throws if the call failed. */
  call(name: string, input?: Record<string, unknown>): Promise<string>;
  /** The same for a call that must fail. */
  refused(name: string, input?: Record<string, unknown>): Promise<string>;
}

/** Our MCP server on a store in memory, and a client of the SDK that is connected to it. */
export async function lookup({ redact = true } = {}): Promise<Lookup> {
  const store = await openStore("memory:");
  const [near, far] = InMemoryTransport.createLinkedPair();
  const server = makeServer({ use: (work) => work(store) }, { redact });
  await server.connect(far);
  const client = new Client({ name: "test", version: "1" });
  await client.connect(near);
  const answer = async (
    name: string,
    input: Record<string, unknown> = {},
  ): Promise<{ text: string; failed: boolean }> => {
    const { content, isError } = await client.callTool({ name, arguments: input });
    const [only, ...others] = content as { type: string; text: string }[];
    expect(others).toEqual([]);
    return { text: only!.text, failed: isError === true };
  };
  return {
    store,
    client,
    call: async (name, input) => {
      const { text, failed } = await answer(name, input);
      if (failed) throw new Error(text);
      return text;
    },
    refused: async (name, input) => {
      const { text, failed } = await answer(name, input);
      expect(failed).toBe(true);
      return text;
    },
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await store.close();
    },
  };
}

/** What an answer quotes, and what is around it. Fails unless the marks are exactly one pair. */
export function parts(text: string): { readonly own: string; readonly quoted: string } {
  const keys = [...text.matchAll(/<(\/?)session-text key="([0-9a-f]{24})">/g)];
  expect(keys.map(([, slash]) => slash)).toEqual(["", "/"]);
  expect(keys[0]![2]).toBe(keys[1]![2]);
  const [before, rest] = text.split(`${keys[0]![0]}\n`);
  const [quoted, after] = rest!.split(`\n${keys[1]![0]}`);
  return { own: before! + after!, quoted: quoted! };
}
