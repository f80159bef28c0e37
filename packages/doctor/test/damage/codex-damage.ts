import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { zstdCompressSync } from "node:zlib";
import { recordDamage } from "./record-damage.ts";
import { HEADER_DAMAGE, type SessionDamage, TEXT_DAMAGE } from "./session-damage.ts";

/** What happens to whole records of Codex, to its list of threads, and to packed rollouts. */
const records = recordDamage({
  speech: /"type":"response_item","payload":\{"type":"message"/,
  result: /"type":"function_call_output"/,
  call: /"type":"function_call",/,
  input: /("arguments":)"(?:[^"\\]|\\.)*"/,
  output: /("output":)"/,
});

function packed(damage: SessionDamage): SessionDamage {
  return {
    ...damage,
    name: `packed: ${damage.name}`,
    harm(target) {
      const { path } = target.session;
      if (!damage.harm(target)) return false;
      writeFileSync(`${path}.zst`, zstdCompressSync(readFileSync(path)));
      rmSync(path);
      return true;
    },
  };
}

const inList = (name: string, named: SessionDamage["named"], sql: string): SessionDamage => ({
  ...{ name: `list: ${name}`, named, isLossless: true },
  harm({ home, session }) {
    const database = new DatabaseSync(join(home, ".codex/state_5.sqlite"));
    const { changes } = database.prepare(sql).run(session.id);
    database.close();
    return changes === 1;
  },
});

export const CODEX_DAMAGE: readonly SessionDamage[] = [
  ...records,
  ...[...TEXT_DAMAGE, ...HEADER_DAMAGE, ...records].map(packed),
  {
    ...{ name: "packed: cut off", named: ["truncated-compression"], isLossless: false },
    harm({ session: { path }, random }) {
      const whole = zstdCompressSync(readFileSync(path));
      writeFileSync(`${path}.zst`, whole.subarray(0, Math.floor(whole.length * (0.3 + 0.6 * random()))));
      rmSync(path);
      return true;
    },
  },
  inList("no row", ["index-missing"], "delete from threads where id = ?"),
  inList("a row that hides it", ["index-stale"], "update threads set archived = 1 where id = ?"),
  inList("a wrong path", ["index-stale"], "update threads set rollout_path = rollout_path || '.old' where id = ?"),
];
