import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Machine, whyNoMounts } from "../../../testkit/src/machine/index.ts";
import { temporaryHome } from "../command.ts";
import { answered, chat, inTerminal } from "../screen/chat.ts";

describe.concurrent("failure in the user's face, kindly", () => {
  test("a server that does not answer: said in words after some tries; the turn is not lost", async (context) => {
    using home = temporaryHome();
    await using closed = await closedPort();
    const { port } = closed;
    await using terminal = await chat(context, home, [
      ...["--model", "compatible/x", "--base-url", `http://127.0.0.1:${port}/v1`],
    ]);
    await terminal.say("think about rivers");
    await terminal.until(/✗ The server of compatible\/x does not respond/, `127.0.0.1:${port}`);
    await terminal.until(/you asked: think about rivers\n▸ f {2}finish it/);
  });

  test("C19: the disk is full in the middle of a turn: it stops before the next tool, says so, and goes on when asked after space is back", async (context) => {
    const why = whyNoMounts();
    if (why !== null) context.skip(`not run: ${why}`);
    using home = temporaryHome();
    await using machine = new Machine();
    const place = await machine.tmpfs("full", 1 << 20);
    const env = { HOLDFAST_STORE: join(place, "store") };
    await using terminal = await chat(context, home, ["--allow", "shell", "--allow", "write"], { env, rows: 40 });
    // What is left of the journal's last block holds no record of the second call.
    await terminal.paste(`1. run until test -e go; do sleep 0.05; done 2. write b.txt: ${"two ".repeat(3_000)}`);
    await terminal.keys("Enter");
    await terminal.until(/shell until test .* running/);
    fill(join(place, "ballast"));
    writeFileSync(join(home.work, "go"), "");
    await terminal.until(/✗ .*no space left/);
    await terminal.until(/The turn was interrupted\. Everything recorded so far is safe\.\n▸ f {2}finish it/);
    expect(readdirSync(home.work)).not.toContain("b.txt");
    rmSync(join(place, "ballast"));
    await terminal.say("f");
    await answered(terminal, "✓ write b.txt");
    expect(readFileSync(join(home.work, "b.txt"), "utf8")).toMatch(/^(two ){2999}two\s*$/);
  });

  test("C15: a session that is in use: who has it and what one can do, at the start and in the list", async (context) => {
    using home = temporaryHome();
    await using first = await chat(context, home);
    await first.say("think about rivers");
    await answered(first, "I thought about rivers");
    await using second = await inTerminal(context, home, ["chat", "--resume", "latest"]);
    await second.until(/\[SESSION_BUSY\]/);
    expect(await second.ended()).toEqual({ code: 4, signal: null });
    await second.until((screen) => screen.replaceAll("\n", "").includes("holdfast fork"));
    await using third = await inTerminal(context, home, ["resume"]);
    await third.until(/▸ .*think about rivers/);
    await third.keys("Enter");
    await third.until(
      /✗ .* is being written by holdfast/,
      `process ${await first.pid()} on`,
      (screen) => screen.replaceAll(/\s+/g, " ").includes('continue in a copy with "holdfast fork'),
      // The list stays, to choose another one.
      /▸ .*think about rivers/,
    );
  });

  test("C20: a damaged session opens with what was skipped", async (context) => {
    using home = temporaryHome();
    await home.run(["run", "think about rivers"]);
    await home.run(["run", "--continue", "think about lakes"]);
    const folder = join(home.store, "sessions", readdirSync(join(home.store, "sessions"))[0]!);
    const path = join(folder, readdirSync(folder).find((name) => name.endsWith(".jsonl"))!);
    const journal = readFileSync(path, "utf8");
    const at = journal.indexOf("I thought about rivers");
    writeFileSync(path, `${journal.slice(0, at)}X${journal.slice(at + 1)}`);
    await using terminal = await chat(context, home, ["--continue"]);
    await terminal.untilAll(/^! [\d.]+ \w+ at \d+ of \S+: damaged/m, "❯ think about lakes");
  });

  test("no key, and a provider that does not exist: said before a screen is opened, with what to do", async (context) => {
    using home = temporaryHome();
    await using noKey = await inTerminal(context, home, ["chat", "--model", "openai/gpt-5"], {
      env: { OPENAI_API_KEY: "" },
    });
    expect(await noKey.ended()).toEqual({ code: 6, signal: null });
    await noKey.until("OPENAI_API_KEY");
    await using unknown = await inTerminal(context, home, ["chat", "--model", "nosuch/x"]);
    await unknown.ended();
    await unknown.until('Unknown provider "nosuch"');
  });

  test("a server without this model: the turn fails in words, is not lost, and is finished with another model", async (context) => {
    using home = temporaryHome();
    const server = createServer((_request, response) => {
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "model 'nosuch' not found", type: "not_found" } }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    try {
      await using terminal = await chat(context, home, [
        ...["--model", "compatible/nosuch", "--base-url", `http://127.0.0.1:${port}/v1`],
      ]);
      await terminal.say("think about rivers");
      await terminal.until(/✗ [\s\S]*nosuch[\s\S]*The turn failed, [\s\S]*▸ f {2}finish it/);
      await terminal.say("/model offline");
      await terminal.until("Now using offline/offline.");
      await terminal.say("f");
      await answered(terminal, "I thought about rivers");
      expect((await terminal.all()).match(/❯ think about rivers/g)).toHaveLength(1);
    } finally {
      server.close();
    }
  });

  test("without a terminal: one clear line that names what to use instead, and exit code 2", async () => {
    using home = temporaryHome();
    for (const name of ["chat", "resume"]) {
      const { code, stderr, stdout } = await home.run([name]);
      expect(code).toBe(2);
      expect(stdout).toBe("");
      expect(stderr).toMatch(/is not a terminal.*holdfast -p "prompt".*\[NO_TERMINAL\]\n$/);
    }
  });
});

describe.concurrent("holdfast resume", () => {
  for (const [columns, rows] of [
    [80, 24],
    [200, 60],
  ] as const) {
    test(`at ${columns} × ${rows}: interrupted ones first, typing filters, the end of the conversation is shown, Enter goes on with it`, async (context) => {
      using home = temporaryHome();
      await home.run(["run", "think about rivers"]);
      const killed = home.start(["run", "--allow", "shell", "run sleep 300"]);
      await new Promise<void>((resolve) => {
        let said = "";
        const hear = (text: Buffer): void => {
          said += text;
          if (said.includes("sleep 300")) resolve();
        };
        killed.stderr.on("data", hear);
        killed.stdout.on("data", hear);
      });
      killed.kill("SIGTERM");
      await new Promise((resolve) => killed.on("close", resolve));
      await home.run(["run", "think about lakes 日本"]);
      await using terminal = await inTerminal(context, home, ["resume"], { columns, rows });
      await terminal.until(
        /▸ interrupted run sleep 300[\s\S]*think about lakes 日本[\s\S]*think about rivers/,
        "Sessions  3",
      );
      await terminal.type("riv");
      await terminal.until(/Sessions {2}1 of 3\nfilter: riv\n▸ think about rivers/);
      await terminal.until("I thought about rivers");
      await terminal.keys("Enter");
      await terminal.until(/^holdfast think about rivers[\s\S]*^idle\b/m);
      await terminal.say("think about seas");
      await answered(terminal, "I thought about seas");
    });
  }

  test("by the beginning of an id; an unknown one is exit code 3; Esc in the list leaves", async (context) => {
    using home = temporaryHome();
    await home.run(["run", "think about rivers"]);
    const [id] = readdirSync(join(home.store, "sessions"));
    await using known = await inTerminal(context, home, ["resume", id!.slice(0, 13)]);
    await known.until(/^holdfast think about rivers[\s\S]*^idle\b/m);
    await using unknown = await inTerminal(context, home, ["resume", "ffffffff"]);
    expect(await unknown.ended()).toEqual({ code: 3, signal: null });
    await using list = await inTerminal(context, home, ["chat", "--resume"]);
    await list.until(/▸ .*think about rivers/);
    await list.keys("Escape");
    expect(await list.ended()).toEqual({ code: 0, signal: null });
  });
});

/** A port that nobody listens at, and nobody else gets: a connection of our own comes from it. */
async function closedPort(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  return {
    port: socket.localPort!,
    async [Symbol.asyncDispose]() {
      socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Until not a byte more fits. */
function fill(path: string): void {
  for (const bytes of [1 << 16, 1 << 12, 1]) {
    try {
      for (;;) writeFileSync(path, Buffer.alloc(bytes), { flag: "a" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
  }
}
