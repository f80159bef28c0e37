import { foldedNames } from "./file-names.ts";

/**
 * Folders in which every file counts: a repository's hooks and settings, and what CI, editors and agents run or obey
 * when the folder is opened or pushed.
 */
const FOLDERS: ReadonlySet<string> = new Set(
  `.git .husky .githooks .vscode .vscode-server .idea .fleet .zed .devcontainer .circleci .buildkite .woodpecker .teamcity .semaphore .cursor .claude .codex .gemini .windsurf
  .clinerules .roo .continue .mvn .bundle .direnv launchagents launchdaemons autostart`.split(/\s+/u),
);

/** A name that counts only inside a certain folder. */
const WITHIN: readonly (readonly [folder: string, name: string])[] = [
  [".github", "workflows"],
  [".github", "actions"],
  [".github", "copilot-instructions.md"],
  [".github", "instructions"],
  [".gitea", "workflows"],
  [".forgejo", "workflows"],
  [".gitlab", "ci"],
  [".cargo", "config"],
  [".cargo", "config.toml"],
  [".config", "fish"],
  [".config", "git"],
  [".config", "nvim"],
  [".config", "environment.d"],
  ["systemd", "user"],
];

const NAMES: ReadonlySet<string> = new Set(
  `.gitlab-ci.yml .gitlab-ci.yaml .travis.yml .drone.yml .drone.yaml .woodpecker.yml .woodpecker.yaml .appveyor.yml appveyor.yml azure-pipelines.yml azure-pipelines.yaml
  bitbucket-pipelines.yml jenkinsfile cloudbuild.yaml cloudbuild.yml buildspec.yml .cirrus.yml wercker.yml .builds.yml dagger.json
  lefthook.yml lefthook.yaml .lefthook.yml .pre-commit-config.yaml .huskyrc .devcontainer.json .code-workspace
  agents.md agents.override.md claude.md claude.local.md gemini.md copilot-instructions.md .cursorrules .windsurfrules .clinerules .goosehints .aider.conf.yml .mcp.json mcp.json
  .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc
  .xinitrc .xprofile .xsession .xsessionrc .pam_environment config.fish profile.ps1 microsoft.powershell_profile.ps1 crontab
  .vimrc .gvimrc .nvimrc .exrc .nvim.lua .vimrc.local .emacs .dir-locals.el .tmux.conf .screenrc .gdbinit .lldbinit .psqlrc .sqliterc .irbrc .pryrc .pythonrc .rprofile .octaverc
  .gitconfig .hgrc .curlrc .wgetrc
  .npmrc .yarnrc .yarnrc.yml .yarnrc.yaml .pnpmfile.cjs .pnpmfile.mjs bunfig.toml .envrc .mise.toml mise.toml .rtx.toml pip.conf pip.ini sitecustomize.py usercustomize.py .condarc .gemrc
  .sbtrc .mavenrc .gradlerc init.gradle`.split(/\s+/u),
);

/**
 * Whether another program runs or obeys this file by itself. Anything written there is executed later, without asking.
 */
export function isRunLater(path: string): boolean {
  const names = foldedNames(path);
  const last = names.at(-1) ?? "";
  if (NAMES.has(last) || last.endsWith(".code-workspace")) return true;
  return names.some(
    (name, at) => FOLDERS.has(name) || WITHIN.some(([folder, below]) => folder === name && below === names[at + 1]),
  );
}
