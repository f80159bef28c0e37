import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";

/** Put together here, so that no scanner takes this file for a leak. */
const TYPED = `ghp_${"Ab3dEf7hIj".repeat(4).slice(0, 36)}`;
const PRINTED = ["xoxb", "123456789012", "1234567890123", "Zy9xWv8uTs7rQp6oNm5lKj4i"].join("-");
const COMMAND = "cat notes.env";

/** The files of the store that hold this, but for the whole outputs of commands, which are not the journal. */
function holding(home: Home, text: string): string[] {
  const names = readdirSync(home.path, { recursive: true, encoding: "utf8" });
  return names.filter((name) => {
    const path = join(home.path, name);
    if (path.startsWith(home.work) || name.split(/[/\\]/).includes("outputs") || !statSync(path).isFile()) return false;
    return readFileSync(path).includes(text);
  });
}

async function talk(home: Home, env: Record<string, string>): Promise<void> {
  writeFileSync(join(home.work, "notes.env"), `SLACK=${PRINTED}\n`);
  const said = await home.run(["run", `think about ${TYPED}`], { env });
  expect(said.code, said.stderr).toBe(0);
  const done = await home.run(["run", "--allow", `shell(${COMMAND})`, `run ${COMMAND}`], { env });
  expect(done.code, done.stderr).toBe(0);
}

test.concurrent("with redact on, no secret that was typed or printed is in the journal", async () => {
  using home = temporaryHome();
  await talk(home, { HOLDFAST_REDACT: "1" });
  expect(holding(home, TYPED)).toEqual([]);
  expect(holding(home, PRINTED)).toEqual([]);
  expect(holding(home, "[redacted:github]")).not.toEqual([]);
  expect(holding(home, "[redacted:slack]")).not.toEqual([]);
});

test.concurrent("redact in the file of the configuration; the title that a user gives counts too", async () => {
  using home = temporaryHome();
  const config = join(home.work, "config.json");
  writeFileSync(config, JSON.stringify({ redact: true }));
  const env = { HOLDFAST_CONFIG: config };
  const { code, stderr } = await home.run(["run", "--title", `for ${TYPED}`, "say hello"], { env });
  expect(code, stderr).toBe(0);
  const { stdout } = await home.run(["ls", "--json"], { env });
  const { id } = JSON.parse(stdout) as { id: string };
  expect(await home.run(["rename", id, `again ${TYPED}`], { env })).toMatchObject({ code: 0 });
  expect(holding(home, TYPED)).toEqual([]);
});

test.concurrent("without it, both are there: this test can fail", async () => {
  using home = temporaryHome();
  await talk(home, {});
  expect(holding(home, TYPED)).not.toEqual([]);
  expect(holding(home, PRINTED)).not.toEqual([]);
});
