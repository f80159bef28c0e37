import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { recordDamage } from "./record-damage.ts";
import type { SessionDamage } from "./session-damage.ts";

/** What happens beside the events of Copilot CLI, and to whole events. */
const workspace = (name: string, named: SessionDamage["named"], change: (text: string) => string): SessionDamage => ({
  ...{ name: `workspace.yaml: ${name}`, named, isLossless: true },
  harm({ session }) {
    const path = join(dirname(session.path), "workspace.yaml");
    writeFileSync(path, change(readFileSync(path, "utf8")));
    return true;
  },
});

export const COPILOT_DAMAGE: readonly SessionDamage[] = [
  ...recordDamage({
    speech: /^\{"type":"(?:user|assistant)\.message"/,
    result: /^\{"type":"tool\.execution_complete"/,
    call: /^\{"type":"assistant\.message".*"toolCallId"/,
    input: /("arguments":)\{[^{}]*\}/,
    output: /("result":\{"content":)"/,
    unnoticed: /"type":"model\./,
  }),
  workspace("zeros", ["nul-run"], (text) => "\0".repeat(text.length)),
  workspace("empty", ["empty-file"], () => ""),
  workspace("half", ["header-damaged"], (text) => text.slice(5)),
  workspace("garbage", ["header-damaged"], () => "}{\n"),
  {
    ...{ name: "store: no row of the session", named: ["index-missing"], isLossless: true },
    harm({ home, session }) {
      const database = new DatabaseSync(join(home, ".copilot/session-store.db"));
      database.exec("pragma foreign_keys = off");
      const { changes } = database.prepare("delete from sessions where id = ?").run(session.id);
      database.close();
      return changes === 1;
    },
  },
];
