import { foldedNames, isOtherRoot, originalsOf } from "./file-names.ts";

/** Names of files that hold secrets. */
const NAMES = new RegExp(
  `^(?:${[
    String.raw`.+\.env|\.envrc`,
    String.raw`\.netrc|_netrc|\.npmrc|\.yarnrc(?:\.ya?ml)?|\.pypirc|pip\.conf|\.pgpass|pgpass\.conf|\.pg_service\.conf|\.my(?:login)?\.cnf|\.git-credentials|\.gitconfig|\.htpasswd`,
    String.raw`\.boto|\.s3cfg|\.vault-token|\.?vault[-_]pass(?:word)?(?:\.txt)?|rclone\.conf|\.databrickscfg|\.terraformrc|terraform\.rc|\.dockercfg|\.dockerconfigjson`,
    String.raw`(?:.*[-_.])?credentials?(?:\.tfrc|\.enc)?\.(?:json|ya?ml|toml|ini|xml|csv|txt|properties|db)|(?:.*[-_.])?credentials|\.secrets?|(?:.*[-_.])?secrets?(?:\.enc)?\.(?:json|ya?ml|toml|ini|xml|csv|txt|properties|env)`,
    String.raw`.+\.tfstate(?:\.backup)?|.+\.tfvars(?:\.json)?|auth\.json|(?:.+[-_.])?kubeconfig(?:[-_.].+)?|client_secrets?(?:[-_.].*)?\.json`,
    String.raw`(?:.*[-_.])?service[-_]?account(?:[-_.]?key)?(?:[-_.].*)?\.json|.*adminsdk.*\.json|(?:gcp|gcloud|google|gcs)[-_](?:.+[-_])?key\.json|application_default_credentials\.json`,
    String.raw`.+\.(?:pem|key|p12|p8|pk8|pkcs8|pkcs12|pfx|ppk|keystore|jks|bcfks|kdbx?|kbx|age|agekey|gpg|pgp|ovpn)|(?:secret|private)[-_.]?(?:key)?\.asc|age[-_.]?keys?\.txt`,
    String.raw`\.dev\.vars(?:\..+)?|\.flaskenv|.+\.keyring|cookies\.sqlite|login data`,
    String.raw`ssh_host_.+_key|.+\.keychain(?:-db)?|key[34]\.db|logins\.json|wallet\.dat`,
    // Histories: people type passwords too.
    String.raw`\.\w+_history|\.lesshst|\.viminfo`,
  ].join("|")})$`,
  "u",
);
/** `.env`, `.env.local`, `.env~`, `.env-prod`; `id_rsa`, `old_id_rsa.2024`: no letter or digit may follow. */
const VARIABLES = /^\.env(?![a-z0-9])/u;
const SSH_KEY = /(?:^|[^a-z0-9])id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?![a-z0-9])/u;
const NO_KEY = /\.(?:pub|[cm]?[jt]sx?|py|go|rs|java|rb|php|c|h|cpp|cs|swift|kt|md|html?)$/u;
const EXAMPLES =
  /^(?:\.env\.(?:.+\.)?(?:example|sample|template|dist|defaults?|schema)|(?:example|sample|template)\.env)$/u;
const FOLDERS: ReadonlySet<string> = new Set(
  ".ssh .gnupg .aws .kube .azure .gcloud .oci .password-store .keychain .gem .m2 .sops".split(" "),
);
/** Holdfast's own folder is not secret, but it holds the permissions: the agent must not change them. */
const BELOW_CONFIG: ReadonlySet<string> = new Set(
  "gh hub glab gcloud op holdfast rclone doctl containers sops age configstore".split(" "),
);
/** Files in `.git` that may hold a token, for example in the address of a remote. */
const OF_GIT: ReadonlySet<string> = new Set(["config", "config.worktree", "credentials"]);

/** No file system has longer names, and finding the originals of one takes more than linear time. */
const NAME_CHARS_MAX = 1000;
/** No system accepts a longer path. */
const PATH_CHARS_MAX = 40_000;

/**
 * Whether a file or folder, judged by its name alone, probably holds secrets or a copy of some. One question too many
 * does less harm than one too few.
 */
export function isSecret(path: string): boolean {
  if (path.length > PATH_CHARS_MAX) return true;
  const names = foldedNames(path);
  const last = names.at(-1) ?? "";
  // /proc also shows the environment variables of processes.
  if (isOtherRoot(names)) return true;
  if (last.length > NAME_CHARS_MAX || isSecretName(last)) return true;
  const originals = originalsOf(last);
  return names.some(
    (name, at) =>
      FOLDERS.has(name) ||
      (name === ".git" && originals.some((one) => OF_GIT.has(one))) ||
      (name === ".config" && BELOW_CONFIG.has(names[at + 1] ?? "")) ||
      (name === ".docker" && at === names.length - 2 && originals.includes("config.json")),
  );
}

function isSecretName(name: string): boolean {
  if (EXAMPLES.test(name)) return false;
  if (VARIABLES.test(name) || (SSH_KEY.test(name) && !NO_KEY.test(name))) return true;
  return originalsOf(name).some((one) => NAMES.test(one) || VARIABLES.test(one));
}
