import type { EditorOffer } from "@holdfast/server/contract";
import type { EditorTools } from "../../agent/services.ts";
import type { Config } from "../../config.ts";
import type { McpServers } from "../../mcp/servers.ts";
import { offeredServers } from "../../mcp-settings/offered-servers.ts";
import type { Servers } from "../../mcp-settings/server-settings.ts";
import { canonical } from "../../trust/trust.ts";

interface OfferInUse extends EditorTools {
  /** What it was made from: an editor that loads a session again does not restart its servers. */
  readonly offered: EditorOffer["servers"];
}

/** What editors let the agents of their sessions use. Kept in memory alone: settings of servers hold keys. */
export class EditorOffers {
  readonly #config: Config;
  readonly #start: (servers: Servers) => Promise<McpServers>;
  readonly #used = new Map<string, OfferInUse>();

  constructor(config: Config, start: (servers: Servers) => Promise<McpServers>) {
    this.#config = config;
    this.#start = start;
  }

  of(session: string): EditorTools | null {
    return this.#used.get(session) ?? null;
  }

  /** The servers start in the background. */
  async accept(session: string, { files, terminals, servers: offered }: EditorOffer): Promise<void> {
    const before = this.#used.get(session);
    if (before && canonical(before.offered) === canonical(offered)) {
      this.#used.set(session, { ...before, files, terminals });
      return;
    }
    const named = offeredServers(offered, Object.keys(this.#config.mcpServers));
    const servers = offered.length === 0 ? null : await this.#start(named);
    this.#used.set(session, { files, terminals, servers, offered });
    await before?.servers?.close();
  }

  async drop(session: string): Promise<void> {
    const used = this.#used.get(session);
    this.#used.delete(session);
    await used?.servers?.close();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#used.keys()].map((session) => this.drop(session)));
  }
}
