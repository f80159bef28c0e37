import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Hour } from "./hour.ts";
import type { Shell } from "./shell.ts";

/** README.md, in a clone. `inClone`: a real one, with nothing installed yet. */
export async function followReadme(hour: Hour, inClone: boolean): Promise<void> {
  const finished = [/Killed \d+ times|kill -9/i, /nothing .*lost|Nothing/i];
  await hour.types("npm ci && npm start", { sees: finished, ...(inClone ? {} : { typed: "npm start" }) });
  hour.skips("npm ci && npm test", "the tests themselves: .ci/run types it");
  if (inClone) {
    await hour.types("npm run build");
    const sees = [/added \d+ packages/];
    const own = "mkdir ../mine && cd ../mine && npm init -y >/dev/null";
    await hour.types("npm install $(npm pack --silent ../holdfast/packages/*)", {
      typed: `${own} && npm install $(npm pack --silent ../holdfast/packages/*); cd ../holdfast`,
      sees,
    });
  } else {
    hour.skips("npm run build", "only in a clone: npm run newcomer -- --clone");
    hour.skips(
      "npm install $(npm pack --silent ../holdfast/packages/*)",
      "only in a clone: npm run newcomer -- --clone",
    );
  }
  await hour.uses("npx holdfast chat", chat);
  const count = `npx holdfast run --allow 'write(reports/**)' "count words in docs/guides to reports/words.md"`;
  await hour.types(count, { sees: [/reports\/words\.md/] });
  await hour.types(`${count} # killed`, {
    typed: `${killedIn(count.replace("npx ", ""))}; holdfast ls --status interrupted`,
    sees: [/interrupted/],
  });
  await hour.types("npx holdfast run --continue --finish --allow 'write(reports/**)'", {
    sees: [/reports\/words\.md/],
  });
  await hour.types("npx -c 'node examples/hooks.ts'");
}

/** docs/CLI.md, in a project of one's own. */
export async function followCommandPage(hour: Hour, { home, work }: { home: string; work: string }): Promise<void> {
  const store = join(home, ".local/share/holdfast");
  await hour.types(`cd ${work}`);
  hour.skips("npm install -g @holdfast/cli", "not on npm yet");
  await hour.types("holdfast demo", { typed: "holdfast demo --kills 2", sees: [/killed|kill -9/i] });
  await hour.uses("holdfast", chat);
  await hour.uses('holdfast "what does src/index.ts do?"', async (shell) => {
    await shell.until(/what does src\/index\.ts do\?[\s\S]*idle/);
    await shell.type("/quit", "Enter");
  });
  const run = `holdfast run "count words in src to words.md" --allow 'write(words.md)'`;
  await hour.types(run, { sees: [/words\.md/] });
  if (!/\| src\/words\.txt \| 1 \| 3 \|/.test(readFileSync(join(work, "words.md"), "utf8")))
    throw new Error("The report does not count the words of src/words.txt.");
  const { text } = await hour.types("holdfast ls --status interrupted", {
    typed: `${killedIn(run)}; holdfast ls --status interrupted`,
    sees: [/interrupted/],
  });
  const id = /^([0-9a-f]{8}) +interrupted/m.exec(text)?.[1];
  if (id === undefined) throw new Error(`"holdfast ls" shows no id that can be typed:\n${text}`);
  const finish = (which: string): string => `holdfast run --resume ${which} --finish --allow 'write(words.md)'`;
  await hour.types(finish("5f2a91c0"), { typed: finish(id), sees: [/words\.md/] });

  // Every command of the table, with what comes naturally.
  await hour.types("holdfast ls", { sees: [new RegExp(`${id} +idle`)] });
  await hour.types("holdfast search words", { sees: [/count words in src/] });
  await hour.types(`holdfast show ${id}`, { sees: [/count words in src to words\.md/, /^turn 1$/m] });
  await hour.types(`holdfast tail ${id}`, { sees: [/turn\.ended/] });
  await hour.types(`holdfast export ${id}`, { sees: [/^# count words in src/m] });
  await hour.types(`holdfast rename ${id} a better name`);
  await hour.types(`holdfast fork ${id}`, { sees: [/fork/i] });
  await hour.types("holdfast verify", { sees: [/whole/] });
  await hour.types("holdfast repair --all", { sees: [/whole/] });
  await hour.types("holdfast pack --all");
  await hour.types("holdfast rm latest", { sees: [/To undo: holdfast restore/] });
  await hour.types("holdfast trash", { sees: [/a better name/] });
  await hour.types("holdfast restore latest", { sees: [/is back/] });
  await hour.types("holdfast gc --dry-run", { sees: [/[Nn]othing/] });
  await hour.types(`holdfast copy ${store} ${home}/copied --all`, { sees: [/copied/] });
  await hour.types(`holdfast retry ${id}`, { sees: [/Not parked/] });
  await addServers(hour);
  await editors(hour);
  await unattended(hour);
  await otherAgents(hour);
  await hour.types("holdfast rules add 'shell(npm test)' 'write(src/**)'", { sees: [/Added: write\(src\/\*\*\)/] });
  await hour.types("holdfast rules add --deny 'shell(git push)'", { sees: [/Added/] });
  await hour.types("holdfast rules remove 'shell(npm test)'", { sees: [/Removed: shell\(npm test\)/] });
  await hour.types("holdfast rules list --all", { sees: [/^deny +shell\(git push\)/m, /^allow +write\(src/m] });
  await hour.types("holdfast config", { sees: [/^model +offline/m] });
  await hour.types("holdfast completion bash", { sees: [/complete/] });
  await hour.types(`holdfast torture --kills 3 --dir ${work}`, { sees: [/No acknowledged record was lost/] });
  await hour.uses(`holdfast resume ${id}`, leave);
  await hour.types("holdfast serve", {
    typed: `holdfast serve --port 0 >~/serve.log & echo $! >~/serve.pid; until grep -q serves ~/serve.log; do sleep 0.2; done; cat ~/serve.log`,
    sees: [/Holdfast serves .* at http:/],
  });
  await hour.uses(`holdfast attach ${id}`, leave);
  await hour.types(`holdfast share ${id} --expires 7d`, {
    sees: [/http:\S+#token=/, /Anyone with this link can read/],
  });
  await hour.types("holdfast share --list", { sees: [/a better name/] });
  await hour.types("holdfast share --revoke <link>", {
    typed: "holdfast share --revoke $(holdfast share --list --json | head -n 1 | cut -d '\"' -f 4)",
    sees: [/Revoked/],
  });
  await hour.types("kill $(cat ~/serve.pid)");

  const copy = join(home, "backup/holdfast");
  await hour.types("cp -a ~/.local/share/holdfast /backup/holdfast", {
    typed: `mkdir ~/backup && cp -a ~/.local/share/holdfast ${copy}`,
  });
  await hour.types("holdfast --store /backup/holdfast verify", {
    typed: `holdfast --store ${copy} verify`,
    sees: [/whole/],
  });
  await hour.types("holdfast --store /backup/holdfast ls", {
    typed: `holdfast --store ${copy} ls`,
    sees: [/a better name/],
  });
}

/** MCP servers: one that runs here, in place of one from a registry, and one that lacks its key. */
async function addServers(hour: Hour): Promise<void> {
  const server = join(import.meta.dirname, "../../packages/cli/test/mcp-server.ts");
  await hour.types("holdfast mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes", {
    typed: `holdfast mcp add files -- node ${server}`,
    sees: [/Added "files"/],
  });
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell does not replace it either.
  const header = "Authorization: Bearer ${DOCS_TOKEN}";
  await hour.types(`holdfast mcp add docs https://mcp.example.com/mcp -H '${header}'`, { sees: [/Added "docs"/] });
  await hour.types("holdfast mcp", {
    sees: [/^files +ready/m, /^docs +failed/m, /DOCS_TOKEN is not\s+set/],
    exitCode: 1,
  });
  await hour.types("holdfast mcp get files", { sees: [/mcp__files__echo/] });
  await hour.types("holdfast mcp remove files", { sees: [/Removed "files"/] });
  await hour.types("holdfast mcp remove docs", { sees: [/Removed "docs"/] });
  // The agent that looks up the sessions is this one.
  await hour.types("claude mcp add holdfast -- holdfast mcp serve", {
    typed: "holdfast mcp add own -- holdfast mcp serve && holdfast mcp get own && holdfast mcp remove own",
    sees: [/mcp__own__search_sessions/, /Removed "own"/],
  });
  await hour.types("holdfast mcp serve --transport http", {
    typed: `holdfast mcp serve --transport http --port 0 >~/mcp.log 2>&1 & until grep -q 'The token is in' ~/mcp.log; do sleep 0.2; done; kill $!; wait; cat ~/mcp.log`,
    sees: [/http:\/\/127\.0\.0\.1:\d+\/mcp/, /The token is in/],
  });
}

/** Editors start these two, and say this first. */
async function editors(hour: Hour): Promise<void> {
  const hello = `echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'`;
  await hour.types("holdfast acp", { typed: `${hello} | holdfast acp`, sees: [/"loadSession":true/] });
  await hour.types("holdfast wrap -- gemini --acp", {
    typed: `${hello} | holdfast wrap -- holdfast acp`,
    sees: [/"loadSession":true/],
  });
  const own = "--file editor.json --yes";
  await hour.types("holdfast wrap --install jetbrains --name Gemini -- gemini --acp", {
    typed: `holdfast wrap --install jetbrains ${own} --name Gemini -- gemini --acp`,
    sees: [/^\+ .*"Gemini"/m, /sessions of "Gemini" survive/],
  });
  await hour.types("holdfast wrap --install zed", {
    typed: `holdfast wrap --install zed ${own}`,
    sees: [/wrapped already/, /Nothing to do/],
  });
  await hour.types("holdfast wrap --uninstall zed --name Gemini", {
    typed: `holdfast wrap --uninstall zed ${own} --name Gemini`,
    sees: [/runs without Holdfast/],
  });
}

/** The agent that nobody can change is our own. */
async function unattended(hour: Hour): Promise<void> {
  const run = (rest: string): string => `holdfast run --agent 'holdfast acp' ${rest} --allow 'write(again.md)'`;
  const documented = (rest: string): string =>
    `holdfast run --agent 'gemini --acp' ${rest} --allow 'shell(npm test)' --allow 'edit(src/**)'`;
  await hour.types(documented('"fix the failing test"'), {
    typed: run('"count words in src to again.md"'),
    sees: [/The report is in `?again\.md/],
  });
  await hour.types(documented("--continue --finish"), {
    typed: run("--continue --finish"),
    sees: [/Nothing to finish/],
  });
}

/** A session that Claude Code wrote: whole, then without its end, then repaired. */
async function otherAgents(hour: Hour): Promise<void> {
  const session = "projects/-tmp-holdfast-lab-work/3c8ffb58-8a5d-4819-a274-5571ad5a0223.jsonl";
  const recorded = join(
    import.meta.dirname,
    "../../packages/doctor/test/recordings/claude-code/2.1.328/talk/home/.claude",
  );
  await hour.types("gunzip", { typed: `gunzip -c ${recorded}/${session}.gz >~/talk.jsonl`, sees: [] });
  await hour.types("holdfast doctor", { typed: "holdfast doctor ~/talk.jsonl", sees: [/1 healthy, 0 damaged/] });
  await hour.types("holdfast import <path or id>", {
    typed: "holdfast import ~/talk.jsonl",
    sees: [/claude-code: 4 of 4 messages added/],
  });
  await hour.types("holdfast watch --once", { typed: "holdfast watch --once", sees: [/sessions? kept/] });
  await hour.types("holdfast watch --unit", { typed: "holdfast watch --unit", sees: [/ExecStart=/] });
  await hour.types("holdfast watch --forget-deleted", {
    typed: "holdfast watch --forget-deleted",
    sees: [/No agent has deleted/],
  });
  const project = "~/.claude/projects/-tmp-holdfast-lab-work";
  await hour.types("mkdir", { typed: `mkdir -p ${project} && cp ~/talk.jsonl ${project}/`, sees: [] });
  await hour.types("holdfast ls --agents", { typed: "holdfast ls --agents", sees: [/claude-code +unread/] });
  await hour.types("holdfast search --agents <words>", {
    typed: "holdfast search --agents heron",
    sees: [/What is a heron/, /holdfast import talk/],
  });
  await hour.types("holdfast export <path or id> --to <agent>", {
    typed: "holdfast export ~/talk.jsonl --to pi --cwd ~",
    sees: [/^pi session /m, /wrote .*\.pi.agent.sessions/, /^ {2}pi --session /m],
  });
  await hour.types("holdfast doctor # damaged", {
    typed: 'printf \'{"type":"user","mess\' >>~/talk.jsonl; holdfast doctor ~/talk.jsonl',
    sees: [/torn-record/, /1 damaged/],
    exitCode: 1,
  });
  await hour.types("holdfast doctor --fix", {
    typed: "holdfast doctor --fix --yes ~/talk.jsonl && holdfast doctor ~/talk.jsonl",
    sees: [/1 healthy, 0 damaged/],
  });
}

/** Says something, sees an answer, leaves. */
async function chat(shell: Shell): Promise<void> {
  await shell.until(/type a prompt, or \/help/);
  await shell.type("hello", "Enter");
  await shell.until(/For real work/);
  await leave(shell);
}

async function leave(shell: Shell): Promise<void> {
  await shell.until(/type a prompt, or \/help/);
  await shell.type("/quit", "Enter");
}

/** Runs a command in the background, so slowly that its turn is seen before it ends, and kills it in the middle. */
function killedIn(command: string): string {
  const underWay = "until holdfast ls --status running | grep -q running; do sleep 0.1; done";
  return `HOLDFAST_OFFLINE_DELAY_MS=3000 ${command} & ${underWay}; kill -9 $!; wait`;
}
