import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import { decide, makeSearchFilter } from "../../../../src/tools/permission/decide.ts";

const seed = seedOf(import.meta.url, "unit");
const here = place();
const cwd = realpathSync(here.path);
afterAll(() => here[Symbol.dispose]());

const verdict = (name: string, path: string, allow: readonly string[]): string =>
  decide(
    { name, input: { path, pattern: "x", content: "" } },
    { cwd, home: "/home/me", policy: { allow, ask: [], deny: [] } },
  ).verdict;
const EVERYTHING = [
  "*",
  "read",
  "write",
  "edit",
  "search",
  "read(**)",
  "write(**)",
  "edit(**)",
  "search(**)",
  "read(/**)",
];

const SECRETS = `
.git/config .git/config.worktree .git/modules/x/config .git/credentials .git/config.bak .GIT/CONFIG sub/.git/config
.env .env.local .env.production .env~ .env.bak .env-prod .env_old .env.local.swp prod.env .ENV .envrc #.env# .#.env
id_rsa id_rsa.bak id_rsa~ id_ed25519 id_ed25519.old old_id_rsa id_rsa.2024 .id_rsa.swp ID_RSA id_ecdsa_sk backup/id_rsa.tar.gz
.ssh/config .ssh/known_hosts server.pem server.key server.key.bak cert.p12 cert.pfx key.p8 key.ppk store.jks pass.kdbx secret.gpg age.agekey backup.age keys/age-keys.txt
.gnupg/x .aws/config .aws/credentials .azure/x .kube/config .oci/config .config/gcloud/x .config/gh/hosts.yml
kubeconfig kubeconfig.yaml prod.kubeconfig kubeconfig-prod kubeconfig~ auth.json auth.json.bak .codex/auth.json
service-account.json serviceaccount.json service_account_key.json my-service-account.json service-account-prod.json x-firebase-adminsdk-1.json gcp-key.json client_secret.json client_secret_123.json
.netrc _netrc .netrc.bak .npmrc .npmrc~ .yarnrc.yml .pypirc .pypirc.old pip.conf .pgpass .my.cnf .git-credentials .gitconfig .docker/config.json .dockercfg
.credentials.json .claude/.credentials.json .credentials .secrets .secrets.yaml .secret.json .dev.vars .dev.vars.staging .flaskenv login.keyring cookies.sqlite
credentials credentials.json aws-credentials.csv secrets.yml prod.secrets.json main.tfstate prod.tfvars rclone.conf vault-password.txt .vault-token .bash_history
`
  .trim()
  .split(/\s+/u);

const RUN_LATER = `
.git/hooks/pre-commit .git/config .git/info/attributes .GIT/hooks/x sub/.git/hooks/x .husky/pre-commit .githooks/pre-push lefthook.yml .pre-commit-config.yaml
.github/workflows/ci.yml .github/Workflows/x.yml .github/actions/x/action.yml .gitlab-ci.yml .circleci/config.yml .travis.yml Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml .buildkite/pipeline.yml
.vscode/tasks.json .vscode/settings.json .VSCode/launch.json .idea/workspace.xml x.code-workspace .devcontainer/devcontainer.json .devcontainer.json
.bashrc .bash_profile .profile .zshrc .zshenv .config/fish/config.fish .inputrc .vimrc .tmux.conf .gdbinit .xinitrc .config/systemd/user/x.service Library/LaunchAgents/x.plist
AGENTS.md agents.md sub/AGENTS.md CLAUDE.md CLAUDE.local.md GEMINI.md .cursorrules .cursor/rules/x .claude/settings.json .github/copilot-instructions.md .mcp.json
.npmrc .yarnrc.yml .pnpmfile.cjs .envrc mise.toml .cargo/config.toml .mvn/extensions.xml pip.conf .gitconfig
`
  .trim()
  .split(/\s+/u);

const FREE = `
src/a.ts README.md src/secrets.ts src/credentials.test.ts .env.example .env.local.example example.env environment.ts env.d.ts src/id_rsa.test.ts id_rsa.pub keys.md
package.json .gitignore .gitattributes .github/CODEOWNERS .github/dependabot.yml .git/HEAD src/auth.ts auth/index.json config.json src/service-account.ts kubeconfig.ts/x docs/agents-guide.md
tsconfig.json Makefile a~ notes.bak monkey.txt keyboard.json
`
  .trim()
  .split(/\s+/u);

describe("what rules for everything do not allow", () => {
  test.each(SECRETS)("reading %s", (path) => {
    for (const tool of ["read", "search", "write", "edit"]) expect(verdict(tool, path, EVERYTHING), tool).toBe("ask");
    expect(
      makeSearchFilter({ cwd, policy: { allow: EVERYTHING, ask: [], deny: [] } })(join(cwd, path)),
      "a search",
    ).toBe(true);
    expect(verdict("read", path, [`read(=${path})`]), "unless it is named").toBe("allow");
    expect(verdict("read", path, [`write(=${path})`]), "for this tool").toBe("ask");
  });

  test.each(RUN_LATER)("writing %s", (path) => {
    for (const tool of ["write", "edit"]) expect(verdict(tool, path, EVERYTHING), tool).toBe("ask");
    expect(verdict("write", path, [`write(=${path})`]), "unless it is named").toBe("allow");
  });

  test.each(FREE)("but %s", (path) => {
    expect(verdict("read", path, []), "reading").toBe("allow");
    if (!path.startsWith(".git/")) expect(verdict("write", path, ["write"]), "writing").toBe("allow");
  });

  test("by any way to write the same name", () => {
    for (const path of [
      ".g\u200cit/hooks/x",
      ".git./hooks/x",
      "GIT~1/hooks/x",
      ".git::$INDEX_ALLOCATION/x",
      ".ſsh/x",
      ".env::$DATA",
      ".env.",
      ".env ",
      "A\u200bGENTS.md",
    ])
      expect(verdict("write", path, EVERYTHING), path).toBe("ask");
  });

  test("by a link to it, a link to its folder, and a link in its place", () => {
    mkdirSync(join(cwd, ".husky"));
    mkdirSync(join(cwd, "plain"));
    writeFileSync(join(cwd, ".env"), "");
    symlinkSync(".env", join(cwd, "notes.txt"));
    symlinkSync(".husky", join(cwd, "folder"));
    symlinkSync("plain", join(cwd, ".vscode"));
    symlinkSync(".github/workflows/new.yml", join(cwd, "dangling.yml"));
    expect(verdict("read", "notes.txt", EVERYTHING)).toBe("ask");
    for (const path of ["notes.txt", "folder/pre-commit", ".vscode/tasks.json", "dangling.yml", "plain/../folder/x"])
      expect(verdict("write", path, EVERYTHING), path).toBe("ask");
    expect(verdict("write", "plain/tasks.json", ["write"])).toBe("allow");
  });

  test("whatever folders and copies it is found in: no wildcard allows a guarded file", () => {
    const guarded = fc.constantFrom(...[...SECRETS, ...RUN_LATER].filter((path) => !path.includes("#")));
    const folders = fc.array(fc.constantFrom("a", "B", "x y", "..", ".", "src"), { maxLength: 3 });
    const copy = fc.constantFrom("", "", "", ".bak", "~", ".old", ".1", ".bak~", " copy", " (2)");
    const rules = fc.subarray([
      ...EVERYTHING,
      "write(/**)",
      "edit(/**)",
      "write(**/*)",
      "read(**/.*)",
      "write(**/.*/**)",
    ]);
    const change = fc.constantFrom<(path: string) => string>(
      (path) => path,
      (path) => path.toUpperCase(),
      (path) => `${cwd}/${path}`,
    );
    holds(
      fc.property(guarded, folders, copy, rules, change, (path, above, copy, rules, change) => {
        const whole = change([...above, path].join("/"));
        expect(verdict("write", whole, rules), whole).toBe("ask");
        if (SECRETS.includes(path)) expect(verdict("read", whole + copy, rules), whole + copy).toBe("ask");
      }),
      seed,
      3000,
    );
  });
});
