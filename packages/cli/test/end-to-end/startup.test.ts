import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { exitCodes } from "../../src/exit.ts";
import { makeProgram } from "../../src/main.ts";
import { bin, ended, temporaryHome } from "../command.ts";
import { speakIn } from "../sessions.ts";

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));

/** A Node older than 24 on this machine. */
function oldNode(): { readonly path: string; readonly version: string } | null {
  for (const folder of [...(process.env["PATH"] ?? "").split(delimiter), "/usr/bin"]) {
    const path = join(folder, "node");
    const { stdout } = spawnSync(path, ["-p", "process.versions.node"], { encoding: "utf8" });
    const version = (stdout ?? "").trim();
    if (version !== "" && Number.parseInt(version, 10) < 24) return { path, version };
  }
  return null;
}

describe("starting the command", () => {
  test("--version", async () => {
    using home = temporaryHome();
    for (const flag of ["--version", "-v", "-V"])
      expect(await home.run([flag])).toEqual({ code: 0, signal: null, stdout: `${version}\n`, stderr: "" });
  });

  test("an old Node is told in one line, by a file that it can read", () => {
    using home = temporaryHome();
    const text = readFileSync(bin, "utf8");
    const pretended = `Object.defineProperty(process.versions,"node",{value:"18.20.0"});`;
    const child = join(home.path, "old-node.mjs");
    writeFileSync(child, text.replace(/^(#!.*\n)/, `$1${pretended}`));
    let failed: { status: number; stderr: string; stdout: string } | undefined;
    try {
      execFileSync(process.execPath, [child, "ls"], { encoding: "utf8", stdio: "pipe" });
    } catch (error) {
      failed = error as never;
    }
    expect(failed).toMatchObject({ status: 2, stdout: "" });
    expect(failed!.stderr).toMatch(/^holdfast needs Node.js 24 or newer, but this is v[^\n]*\n$/);
    expect(text).not.toMatch(/^import /m);
    expect(text).not.toMatch(/\?\.|\?\?|\bawait\b/);
  });

  test.each(["index", "store", "disk"])(
    "importing holdfast (%s) on an old Node says in one line what it needs",
    (entry) => {
      using home = temporaryHome();
      const library = pathToFileURL(join(import.meta.dirname, `../../../holdfast/bundle/${entry}.js`)).href;
      const program = join(home.path, "program.mjs");
      writeFileSync(
        program,
        `await import(${JSON.stringify(library)}).catch((error) => console.error(error.message));\n`,
      );
      const words = (found: string): string =>
        `holdfast needs Node.js 24 or newer, Bun or Deno, but this is Node.js ${found}.\n`;
      // Pretended: works everywhere.
      const pretended = `data:text/javascript,Object.defineProperty(process.versions,"node",{value:"20.1.0"})`;
      const asOld = spawnSync(process.execPath, ["--import", pretended, program], { encoding: "utf8" });
      expect(asOld.stderr).toBe(words("20.1.0"));
      // For real, where there is one: it must also be able to parse the file.
      const old = oldNode();
      if (old === null) console.log("not run: import on a real old Node (none in PATH or /usr/bin)");
      else {
        const ran = spawnSync(old.path, [program], { encoding: "utf8" });
        expect({ path: old.path, stderr: ran.stderr }).toEqual({ path: old.path, stderr: words(old.version) });
      }
    },
  );

  test("alone, where nobody sits at a terminal, it says what it can do", async () => {
    using home = temporaryHome();
    const { code, stdout, stderr } = await home.run([]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: holdfast/);
    for (const [exit, meaning] of exitCodes) expect(stdout).toContain(`  ${exit}  ${meaning}`);
  });

  test("every command has a summary, and help with an example", () => {
    const program = makeProgram();
    const visible = program
      .createHelp()
      .visibleCommands(program)
      .filter((command) => command.name() !== "help");
    expect(visible.length).toBeGreaterThan(15);
    for (const command of visible) {
      let text = "";
      command.configureOutput({
        writeOut: (part) => {
          text += part;
        },
      });
      command.outputHelp();
      expect(command.summary(), command.name()).not.toBe("");
      expect(text, command.name()).toMatch(/Examples?:\n[\s\S]*holdfast /);
      expect(text, command.name()).toContain("--store <address>");
    }
  });

  test.each([
    [["shw"], 2, /Unknown command "shw"\. Did you mean "holdfast show"\?/],
    [["ls", "--limti", "3"], 2, /unknown option '--limti'\n\(Did you mean --limit\?\)/],
    [["ls", "--limit", "many"], 2, /Give a whole number/],
    [["ls", "--since", "yesterdayish"], 2, /Give a date, or an age/],
    [["show"], 2, /missing required argument 'id'/],
    [["gc", "--older-than", "long"], 2, /Give an age/],
    [["--store", "mysql://x", "ls"], 2, /is not the address of a store/],
  ])("a wrong argument is said without a stack trace: %j", async (args, code, words) => {
    using home = temporaryHome();
    const ran = await home.run(args);
    expect(ran).toMatchObject({ code, stdout: "" });
    expect(ran.stderr).toMatch(words);
    expect(ran.stderr).toMatch(/^holdfast: /);
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });

  test("HOLDFAST_DEBUG shows where it happened", async () => {
    using home = temporaryHome();
    const { stderr } = await home.run(["show", "abcd"], { env: { HOLDFAST_DEBUG: "1" } });
    expect(stderr).toMatch(/\n\s+at /);
  });

  test("a pipe that closes ends it quietly", async () => {
    using home = temporaryHome();
    await speakIn(home.store, { prompt: "x".repeat(50), answer: "word ".repeat(200_000) });
    const child = home.start(["show", "latest", "--full"]);
    child.stdout.once("data", () => child.stdout.destroy());
    child.stdin.end();
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const status = await new Promise((resolve) => child.once("close", (code, signal) => resolve({ code, signal })));
    expect({ status, stderr }).toEqual({ status: { code: 0, signal: null }, stderr: "" });
  });

  test("colours only on a terminal, unless they are forced; NO_COLOR has the last word there", async () => {
    using home = temporaryHome();
    await speakIn(home.store, { prompt: "one" });
    expect((await home.run(["ls"])).stdout).not.toContain("\x1b");
    expect((await home.run(["ls"], { env: { FORCE_COLOR: "1" } })).stdout).toContain("\x1b[1m");
    const inTerminal = async (env: Record<string, string>): Promise<string> => {
      const command = `stty cols 60; exec '${process.execPath}' '${bin}' ls`;
      const child = spawn("script", ["-qfec", command, "/dev/null"], {
        env: { PATH: process.env["PATH"], TERM: "xterm", ...home.env, ...env },
      });
      child.stdin.end();
      return (await ended(child)).stdout;
    };
    expect(await inTerminal({})).toContain("\x1b[1m");
    expect(await inTerminal({ NO_COLOR: "1" })).not.toContain("\x1b");
  });

  test("what Node compiled is kept in the user's own cache, and a home that cannot be written is no failure", async () => {
    using home = temporaryHome();
    const env = { NODE_COMPILE_CACHE: undefined };
    expect((await home.run(["config"], { env })).code).toBe(0);
    expect(readdirSync(join(home.path, ".cache/holdfast/code"))).not.toEqual([]);
    expect((await home.run(["config"], { env: { ...env, HOME: "/dev/null" } })).code).toBe(0);
  });

  test("with any umask, nobody else can write what Node compiled; a cache that others can write to is not used", async (context) => {
    using home = temporaryHome();
    const env = { ...home.env, PATH: process.env["PATH"], HOLDFAST_CONFIG: "" };
    const cache = join(home.path, ".cache");
    const run = (): readonly string[] => {
      const command = 'umask 000; exec "$0" "$@"';
      const args = ["-c", command, process.execPath, bin, "config"];
      expect(spawnSync("/bin/sh", args, { cwd: home.work, env, encoding: "utf8" })).toMatchObject({ status: 0 });
      return readdirSync(cache, { recursive: true, encoding: "utf8" });
    };
    run();
    for (const name of ["", "holdfast", ...readdirSync(join(cache, "holdfast")).map((one) => join("holdfast", one))])
      expect(statSync(join(cache, name)).mode & 0o777, name).toBe(0o700);
    const code = join(cache, "holdfast/code");
    const emptied = (): string => {
      rmSync(code, { recursive: true });
      mkdirSync(code, { mode: 0o700 });
      return code;
    };
    // What others may have prepared: they could write to the folder, or to one above it.
    for (const open of [emptied(), cache, home.path]) {
      emptied();
      chmodSync(open, 0o777);
      expect(run(), open).toEqual(["holdfast", "holdfast/code"]);
      chmodSync(open, 0o700);
    }
    expect(run().length).toBeGreaterThan(2);
    rmSync(code, { recursive: true });
    symlinkSync(home.work, code);
    run();
    expect(readdirSync(home.work)).toEqual([]);
    if (process.getuid?.() !== 0) context.skip("the rest was not run: only root can give a folder to another user");
    rmSync(code);
    mkdirSync(code, { mode: 0o700 });
    chownSync(code, 65_534, 65_534);
    expect(run()).toEqual(["holdfast", "holdfast/code"]);
  });

  test("nothing phones home: no command looks up a name or opens a connection, nor does a turn of the offline model", async () => {
    using home = temporaryHome();
    const told = join(home.path, "told");
    const watch = join(home.path, "watch.mjs");
    writeFileSync(
      watch,
      `import dns from "node:dns"; import net from "node:net"; import fs from "node:fs";
       const tell = (what) => fs.appendFileSync(${JSON.stringify(told)}, what + "\\n");
       for (const name of ["lookup", "resolve", "resolve4"]) dns[name] = () => tell(name);
       const connect = net.Socket.prototype.connect;
       net.Socket.prototype.connect = function (...args) { tell("connect"); return connect.apply(this, args); };
       if (process.argv.includes("--probe")) net.connect(9, "127.0.0.1").on("error", () => {});`,
    );
    const env = { NODE_OPTIONS: `--import=${watch}` };
    for (const args of [["run", "hello"], ["ls"], ["show", "latest"], ["verify"], ["config"], ["--help"]])
      expect(await home.run(args, { env }), args.join(" ")).toMatchObject({ code: 0 });
    expect(existsSync(told)).toBe(false);
    // The watch would have seen it.
    await home.run(["ls", "--probe"], { env });
    expect(readFileSync(told, "utf8")).toContain("connect");
  });
});
