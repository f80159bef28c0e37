import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A longer file is not a prompt. */
const BYTES_MAX = 4 * 1024 * 1024;

/**
 * Lets the person's own editor change a text: `$VISUAL`, else `$EDITOR`, else vi (on Windows Notepad). The terminal
 * belongs to that program until it ends. Throws if it cannot be started or ends with an error: the text is then
 * unchanged.
 */
export async function editOutside(text: string, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const program = env["VISUAL"] || env["EDITOR"] || (process.platform === "win32" ? "notepad" : "vi");
  // Only this user can read it: a prompt may hold secrets.
  const folder = mkdtempSync(join(tmpdir(), "holdfast-prompt-"));
  const path = join(folder, "prompt.md");
  try {
    writeFileSync(path, text, { mode: 0o600 });
    await run(program, path, env);
    const bytes = readFileSync(path);
    if (bytes.length > BYTES_MAX)
      throw new Error(`The file is larger than ${BYTES_MAX} bytes. The prompt is unchanged.`);
    // Editors end a file with a line end.
    return bytes.toString("utf8").replace(/\r?\n$/u, "");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function run(program: string, path: string, env: NodeJS.ProcessEnv): Promise<void> {
  // Like git: the setting may be a command line, such as `code --wait`.
  const isWindows = process.platform === "win32";
  const child = isWindows
    ? spawn(`${program} "${path}"`, { stdio: "inherit", env, shell: true })
    : spawn("/bin/sh", ["-c", `${program} "$@"`, program, path], { stdio: "inherit", env });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) resolve();
      else
        reject(
          new Error(`The editor "${program}" ended with ${signal ?? `exit code ${code}`}. The prompt is unchanged.`),
        );
    });
  });
}
