import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { editOutside } from "../../../../src/screen/input/outside-editor.ts";
import { runUserCommand, userCommandIn } from "../../../../src/screen/input/user-command.ts";
import { identify } from "../../../../src/tools/shell/process-groups.ts";

function folder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "holdfast-programs-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A program that stands for somebody's editor. */
function script(path: string, lines: string): string {
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe("the person's own editor", () => {
  test("changes the text, which only this user can read meanwhile, and which is gone afterwards", async () => {
    using here = folder();
    const seen = join(here.path, "seen");
    const program = script(
      join(here.path, "ed"),
      `ls -l "$2" > "${seen}"; echo "$2" >> "${seen}"; printf 'more\\n' >> "$2"`,
    );
    const text = await editOutside("first\n", { ...process.env, VISUAL: `${program} --wait`, EDITOR: "false" });
    expect(text).toBe("first\nmore");
    const [listed, path] = readFileSync(seen, "utf8").trim().split("\n");
    expect(listed).toMatch(/^-rw-------/);
    expect(existsSync(path!)).toBe(false);
  });

  test("that fails or is missing changes nothing, and says so", async () => {
    using here = folder();
    const failing = script(join(here.path, "ed"), 'echo gone > "$1"; exit 3');
    await expect(editOutside("text", { ...process.env, VISUAL: "", EDITOR: failing })).rejects.toThrow(
      /exit code 3. The prompt is unchanged/,
    );
    await expect(editOutside("text", { ...process.env, VISUAL: "", EDITOR: "/no/such/editor" })).rejects.toThrow(
      /ended with exit code 127/,
    );
  });
});

describe("!command", () => {
  const run = (command: string, cwd: string, signal = new AbortController().signal) =>
    runUserCommand(command, { cwd, signal, onOutput: () => undefined });

  test("is one line that starts with an exclamation mark", () => {
    expect(userCommandIn("!npm test")).toBe("npm test");
    for (const text of ["!", "! ", "what!", "!a\n!b", "npm test"]) expect(userCommandIn(text), text).toBeNull();
  });

  test("runs in the folder, and tells both streams and how it ended", async () => {
    using here = folder();
    expect(await run("pwd; echo err >&2", here.path)).toEqual({
      output: expect.stringMatching(/^\/.*holdfast-programs-.*\nerr\n$/s),
      failure: null,
    });
    expect(await run("exit 3", here.path)).toEqual({ output: "", failure: "exit code 3" });
    expect(await run("kill -9 $$", here.path)).toEqual({ output: "", failure: "SIGKILL" });
  });

  test("gets no input, so that it does not take the chat's keys", async () => {
    using here = folder();
    expect((await run("cat; echo done", here.path)).output).toBe("done\n");
  });

  test("keeps the beginning and the end of what it prints, and cuts no character", async () => {
    using here = folder();
    const { output } = await run('i=0; while [ $i -lt 9000 ]; do echo "$i 🙂🙂🙂"; i=$((i+1)); done', here.path);
    expect(output).toMatch(/^0 🙂🙂🙂\n[\s\S]*characters left out[\s\S]*8999 🙂🙂🙂\n$/u);
    expect(output.length).toBeLessThan(70_000);
    expect(output.isWellFormed()).toBe(true);
  });

  test("ends with everything that it started when it is stopped", async () => {
    using here = folder();
    const stop = new AbortController();
    const started = join(here.path, "started");
    const running = runUserCommand(`sh -c 'echo $$ > ${started}.new; mv ${started}.new ${started}; sleep 600' & wait`, {
      cwd: here.path,
      signal: stop.signal,
      onOutput: () => undefined,
    });
    await expect.poll(() => existsSync(started) && statSync(started).size > 0).toBe(true);
    stop.abort();
    expect((await running).failure).toBe("SIGTERM");
    const pid = Number(readFileSync(started, "utf8"));
    await expect.poll(() => identify(pid)).toBeNull();
  });
});
