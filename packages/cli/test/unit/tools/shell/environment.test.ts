import { describe, expect, test } from "vitest";
import { commandEnvironment } from "../../../../src/tools/shell/environment.ts";

const isSeen = (name: string, value = "value", pass: readonly string[] = []): boolean =>
  name in commandEnvironment({ [name]: value }, pass);

describe("what a command sees of the agent's variables", () => {
  test.each(
    [
      ..."ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN OPENAI_API_KEY OPENAI_ORG_ID GEMINI_API_KEY GOOGLE_API_KEY COMPATIBLE_API_KEY".split(
        " ",
      ),
      ..."GOOGLE_APPLICATION_CREDENTIALS AZURE_OPENAI_API_KEY MISTRAL_API_KEY GROQ_API_KEY OPENROUTER_API_KEY HF_TOKEN".split(
        " ",
      ),
      ..."AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE GH_TOKEN GITHUB_TOKEN GITLAB_TOKEN CI_JOB_TOKEN".split(
        " ",
      ),
      ..."NPM_TOKEN NODE_AUTH_TOKEN npm_config__authToken PGPASSWORD pgPassword PGPASSFILE PGSERVICEFILE DATABASE_URL REDIS_URL".split(
        " ",
      ),
      ..."SSH_AUTH_SOCK SSH_ASKPASS GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_SESSION_COOKIE KUBECONFIG DOCKER_AUTH_CONFIG".split(
        " ",
      ),
      ..."SLACK_WEBHOOK_URL SENTRY_DSN VAULT_TOKEN ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN MY_SECRET BASH_ENV ENV".split(
        " ",
      ),
      ..."HOLDFAST_ALLOW HOLDFAST_PASS_ENV HOLDFAST_BASE_URL LCX PATHS HOMES".split(" "),
    ].map((name) => [name] as const),
  )("not %s", (name) => {
    expect(isSeen(name)).toBe(false);
    expect(isSeen(name, "value", [name.toLowerCase()]), "unless it is named").toBe(true);
  });

  test.each(
    [
      ..."PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE TERM TMPDIR TZ XDG_CONFIG_HOME XDG_RUNTIME_DIR EDITOR PWD CI".split(
        " ",
      ),
      ..."NODE_ENV JAVA_HOME GOPATH CARGO_HOME VIRTUAL_ENV CFLAGS SystemRoot Path ComSpec ProgramFiles(x86)".split(" "),
    ].map((name) => [name] as const),
  )("%s", (name) => {
    expect(isSeen(name)).toBe(true);
  });

  test.each([
    ["HTTPS_PROXY", "http://proxy:3128", true],
    ["https_proxy", "http://me:secret@proxy:3128", false],
    ["ALL_PROXY", "socks5://token@proxy", false],
    ["all_proxy", "socks5h://me:pa/ss@proxy", false],
    ["http_proxy", "me:secret@proxy:3128", false],
    ["ALL_PROXY", "token@proxy:1080", false],
    ["no_proxy", "localhost,.example", true],
    ["LC_GPG_PASSPHRASE", "x", false],
    ["XDG_AUTH", "x", false],
    ["MAKEFLAGS", " -- PASSPHRASE=abc", false],
    ["HOLDFAST_STORE", "postgres://u:p@h/db", false],
    ["HOLDFAST_STORE", "postgresql://u@h/db?password=x", false],
    ["HOLDFAST_STORE", "postgres://u@h/db?sslpassword=x", false],
    ["HOLDFAST_STORE", "host=h password = x", false],
    ["HOLDFAST_STORE", "postgres://u@h/db", true],
    ["HOLDFAST_STORE", "sqlite:/home/me/a:b@c.sqlite", true],
    ["HOLDFAST_STORE", "/home/me/store", true],
    ["MAKEFLAGS", " -- API_KEY=abc", false],
    ["MAKEFLAGS", "-j4", true],
    ["PATH", "/a://b:/c@d", true],
  ])("%s=%s: %s", (name, value, seen) => {
    expect(isSeen(name, value)).toBe(seen);
  });
});
