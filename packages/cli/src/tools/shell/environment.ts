export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables that commands inherit: what a shell and common build tools need. `*` at the end matches any suffix. */
const PASSED = `
  PATH HOME USER LOGNAME SHELL PWD LANG LANGUAGE LC_* TERM COLORTERM TERM_PROGRAM COLUMNS LINES TZ TMPDIR TMP TEMP XDG_* EDITOR VISUAL HOSTNAME
  NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI DEBIAN_FRONTEND SOURCE_DATE_EPOCH MAKEFLAGS MAKELEVEL
  http_proxy https_proxy ftp_proxy all_proxy no_proxy
  SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO
  GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_CEILING_DIRECTORIES
  CC CXX CPP AR LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS PKG_CONFIG_PATH LIBRARY_PATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH
  DYLD_FALLBACK_LIBRARY_PATH SDKROOT DEVELOPER_DIR MACOSX_DEPLOYMENT_TARGET HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY NIX_PATH NIX_PROFILES
  NODE_ENV NODE_PATH NODE_OPTIONS NVM_DIR NVM_BIN NVM_INC VOLTA_HOME FNM_DIR FNM_MULTISHELL_PATH PNPM_HOME COREPACK_HOME BUN_INSTALL DENO_DIR DENO_INSTALL
  PYTHONPATH PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE PYENV_ROOT PYENV_VERSION PIPX_HOME
  JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME KOTLIN_HOME SCALA_HOME ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME
  GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOTOOLCHAIN GO111MODULE CGO_ENABLED CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTFLAGS RUST_BACKTRACE
  GEM_HOME GEM_PATH BUNDLE_PATH BUNDLE_GEMFILE RBENV_ROOT RBENV_VERSION COMPOSER_HOME DOTNET_ROOT DOTNET_CLI_HOME ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR
  HOLDFAST_STORE HOLDFAST_CONFIG
  SystemRoot SystemDrive windir ComSpec PATHEXT ProgramData ProgramFiles ProgramFiles(x86) ProgramW6432 CommonProgramFiles CommonProgramFiles(x86)
  CommonProgramW6432 APPDATA LOCALAPPDATA USERPROFILE HOMEDRIVE HOMEPATH USERNAME USERDOMAIN COMPUTERNAME ALLUSERSPROFILE PUBLIC OS
  NUMBER_OF_PROCESSORS PROCESSOR_*
`
  .trim()
  .split(/\s+/u)
  .map(upper);

const NAMES: ReadonlySet<string> = new Set(PASSED.filter((name) => !name.endsWith("*")));
const SECRET = /PASS|PWD|SECRET|TOKEN|KEY|COOKIE|CREDENTIAL|AUTH/u;
const BEGINNINGS = PASSED.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));

/**
 * The variables that a command inherits from the agent: those known to hold no key, and those the user names in `pass`.
 * A command that prints its environment would otherwise put keys into the conversation, the journal and the request to
 * the provider. This is an allowlist because nobody knows the names of all keys. It is not a sandbox: a command runs as
 * the user and can reach what the user can.
 */
export function commandEnvironment(env: Environment, pass: readonly string[] = []): Environment {
  const named = new Set(pass.map(upper));
  return Object.fromEntries(
    Object.entries(env).filter(([name, value]) => {
      const wanted = upper(name);
      if (named.has(wanted)) return true;
      // PATH is a list of folders, so it holds no credentials, whatever the folders are called.
      if (wanted === "PATH") return true;
      const isOfGroup = BEGINNINGS.some((beginning) => wanted.startsWith(beginning)) && !SECRET.test(wanted);
      // A proxy address may lack its scheme: me:secret@proxy:3128.
      if (wanted.endsWith("_PROXY") && wanted !== "NO_PROXY" && value?.includes("@")) return false;
      return (NAMES.has(wanted) || isOfGroup) && !hasCredentials(value ?? "");
    }),
  );
}

/** Windows ignores the case of variable names. */
function upper(name: string): string {
  return name.toUpperCase();
}

/**
 * Whether a value contains an address with a user or a password, or a secret setting. The address of a database may
 * name its user. Takes linear time.
 */
function hasCredentials(value: string): boolean {
  return hasUser(value) || hasSecretMember(value);
}

const SCHEME_CHARS_MAX = 64;

/** `scheme://user@` and `scheme://user:password@`. The password may contain any character. */
function hasUser(value: string): boolean {
  for (let at = value.indexOf("://"); at >= 0; at = value.indexOf("://", at + 3)) {
    const scheme = /[a-z][a-z0-9+.-]*$/iu.exec(value.slice(Math.max(0, at - SCHEME_CHARS_MAX), at))?.[0];
    if (scheme === undefined) continue;
    const end = value.indexOf("@", at);
    if (end < 0) return false;
    const colon = value.indexOf(":", at + 3);
    if (colon >= 0 && colon < end) return true;
    const isDatabase = /^(?:postgres(?:ql)?|file|sqlite)$/iu.test(scheme);
    if (!isDatabase && !/[/\s]/u.test(value.slice(at + 3, end))) return true;
  }
  return false;
}

/** `?password=`, `password = `, `API_KEY=`: a secret name before an equals sign. */
function hasSecretMember(value: string): boolean {
  const before = value.split("=").slice(0, -1);
  return before.some((text) => {
    const name = text.trimEnd().split(/[&\s]/u).at(-1)!;
    return /pass(?:w|phrase)|pwd|secret|token|key/iu.test(name);
  });
}
