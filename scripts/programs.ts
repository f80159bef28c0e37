import { spawnSync } from "node:child_process";

/**
 * Programs that are no npm packages and that some tests want: a terminal, a pooler, proxies, shells. Where they are
 * missing and may be installed (Debian, as root), they are; where not, those tests say `not run`, and this says so
 * first. Arguments: the names of those that are wanted now; all of them without any.
 */
const PROGRAMS = [
  { name: "tmux", probe: ["-V"], wanted: "the screens, in a real terminal" },
  { name: "pgbouncer", probe: ["--version"], wanted: "the PostgreSQL store behind a pooler" },
  { name: "nginx", probe: ["-v"], wanted: "the server behind nginx" },
  { name: "caddy", probe: ["version"], wanted: "the server behind Caddy" },
  { name: "zsh", probe: ["--version"], wanted: "completion in zsh" },
  { name: "fish", probe: ["--version"], wanted: "completion in fish" },
] as const;

const INSTALL_MS = 120_000;

const isMissing = ({ name, probe }: (typeof PROGRAMS)[number]): boolean =>
  spawnSync(name, probe, { stdio: "ignore" }).error !== undefined;

const names = process.argv.slice(2);
const missing = PROGRAMS.filter((program) => names.length === 0 || names.includes(program.name)).filter(isMissing);
if (missing.length > 0 && process.getuid?.() === 0) {
  const packages = missing.map(({ name }) => name);
  // In run level 1, a package's service is not started: the tests start their own.
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
  const install = ["install", "-y", "--no-install-recommends", ...packages];
  spawnSync("apt-get", install, { stdio: "ignore", timeout: INSTALL_MS, env });
  if (missing.some(isMissing)) {
    spawnSync("apt-get", ["update"], { stdio: "ignore", timeout: INSTALL_MS, env });
    // One by one: one that cannot be had does not keep the others away.
    for (const name of packages)
      spawnSync("apt-get", [...install.slice(0, 3), name], { stdio: "ignore", timeout: INSTALL_MS, env });
  }
}
for (const { name, wanted } of missing.filter(isMissing))
  console.log(`${name} is missing and cannot be installed here: tests of ${wanted} are reported as not run.`);
