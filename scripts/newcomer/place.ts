import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "../..");

export interface Place {
  readonly home: string;
  /** The repository, as a newcomer has it. */
  readonly clone: string;
  /** A project of the newcomer's own. */
  readonly work: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Makes the folders of one hour: an empty home, a project, and a clone or what the documents' commands need of one. */
export function prepare(folder: string, inClone: boolean): Place {
  const [home, clone, work, bin] = ["home", "holdfast", "project", "bin"].map((name) => join(folder, name));
  for (const path of [home!, work!, bin!, join(work!, "src")]) mkdirSync(path);
  if (inClone) execFileSync("git", ["clone", "-q", root, clone!]);
  else {
    mkdirSync(clone!);
    for (const name of ["docs", "examples", "package.json"])
      cpSync(join(root, name), join(clone!, name), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(clone!, "node_modules"));
    symlinkSync(join(root, "packages"), join(clone!, "packages"));
    symlinkSync(join(root, "scripts"), join(clone!, "scripts"));
  }
  writeFileSync(join(work!, "src", "words.txt"), "one two three\n");
  // As `npm install -g` would link it.
  symlinkSync(join(inClone ? clone! : root, "packages/cli/bundle/bin.js"), join(bin!, "holdfast"));
  const env = {
    HOME: home!,
    PATH: [bin!, dirname(process.execPath), process.env["PATH"]].join(":"),
    LC_ALL: "C.UTF-8",
    HISTFILE: "/dev/null",
    TERM: "xterm-256color",
    SHELL: "/bin/bash",
    PAGER: "cat",
    ...networkSettings(),
  };
  return { home: home!, clone: clone!, work: work!, env };
}

/** How this machine reaches a package registry: its certificates and proxies. */
function networkSettings(): Record<string, string> {
  const names = /^(?:NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR)|(?:https?|no)_proxy)$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => names.test(name))) as Record<string, string>;
}
