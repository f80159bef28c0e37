import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LIMITS, serverCodes } from "@holdfast/server/internal";
import { expect, test } from "vitest";

const guide = readFileSync(join(import.meta.dirname, "../../../../../docs/guides/server.md"), "utf8");

/** The code block after a comment of the guide. */
function block(name: string): string {
  const [, text] = new RegExp(`<!-- ${name}: [^>]*-->\\n\`\`\`\\w+\\n([\\s\\S]*?)\`\`\``).exec(guide) ?? [];
  expect(text).toBeDefined();
  return text!;
}

test("the guide names each of the server's codes with its status", () => {
  const rows = Array.from(guide.matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \|/gm), ([, code, status]) => [
    code,
    Number(status),
  ]);
  expect(Object.fromEntries(rows)).toEqual(serverCodes);
});

test("the guide names the limits", () => {
  expect(guide).toContain(
    `${LIMITS.bodyBytes / 1024 / 1024} MiB for a body, ${LIMITS.headerBytes / 1024} KiB for headers (431), ${LIMITS.connections.toLocaleString("en")} connections, ${LIMITS.streams.toLocaleString("en")} event streams`,
  );
});

test("systemd accepts the unit of the guide", ({ skip }) => {
  if (!existsSync("/usr/bin/systemd-analyze")) skip("not run: systemd-analyze is not installed");
  const folder = mkdtempSync(join(tmpdir(), "holdfast-unit-"));
  const unit = join(folder, "holdfast.service");
  writeFileSync(unit, block("unit"));
  try {
    // It only warns about what it does not understand.
    const env = { ...process.env, XDG_RUNTIME_DIR: folder };
    const { stderr } = spawnSync("/usr/bin/systemd-analyze", ["verify", "--user", unit], { encoding: "utf8", env });
    expect(stderr).toBe("");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the property list of the guide has a value for each key, and closes what it opens", () => {
  const text = block("plist");
  const keys = text.match(/<key>\w+<\/key>\s*<(?:string|integer|array|dict|true|false)\b/g) ?? [];
  expect(keys).toHaveLength(text.match(/<key>/g)!.length);
  for (const name of ["plist", "dict", "array", "key", "string", "integer"])
    expect(text.match(new RegExp(`<${name}\\b`, "g"))).toHaveLength(text.match(new RegExp(`</${name}>`, "g"))!.length);
});

test("the property list of the guide is one, and starts the server", ({ skip }) => {
  const read = "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
  const { status, stdout } = spawnSync("python3", ["-c", read], { encoding: "utf8", input: block("plist") });
  if (status === null) skip("not run: python3, which can read property lists, is not installed");
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    Label: "holdfast",
    ProgramArguments: expect.arrayContaining(["serve", "--grace", "30"]),
    KeepAlive: { SuccessfulExit: false },
    ExitTimeOut: 45,
  });
});
