/** Names of files, each with what is taken for the same. */
const NAMES = new RegExp(
  `^(?:${[
    String.raw`\.env(?:\..+)?|.+\.env|\.envrc`,
    String.raw`\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.my\.cnf|\.git-credentials|\.htpasswd|\.boto|\.s3cfg|\.vault-token`,
    String.raw`(?:credentials|secrets?)(?:\.tfrc)?\.(?:json|ya?ml|toml|ini|xml|csv|txt)|credentials|.+\.tfstate(?:\.backup)?|.+\.tfvars`,
    String.raw`id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.+\.(?:pem|key|p12|pfx|ppk|keystore|jks|kdbx)`,
    // What was typed, passwords too.
    String.raw`\.\w+_history|\.lesshst|\.viminfo`,
  ].join("|")})$`,
  "u",
);
const EXAMPLES = /^\.env\.(?:example|sample|template|dist|defaults?)$/u;
const FOLDERS: ReadonlySet<string> = new Set([".ssh", ".gnupg", ".aws", ".kube", ".azure", ".password-store"]);
/** Our own is not secret, but says what the agent may do: it must not be for the agent to change. */
const BELOW_CONFIG: ReadonlySet<string> = new Set(["gh", "gcloud", "op", "holdfast"]);

/** Whether a file or a folder, by its name alone, is likely to hold what is nobody else's business. Asking once too often does less harm than once too little. */
export function isSecret(path: string): boolean {
  // Some file systems do not tell upper from lower case.
  const names = path.normalize("NFC").toLowerCase().split(/[/\\]/u);
  const last = names.at(-1) ?? "";
  // Where processes show what they have, their variables among it.
  if (names[0] === "" && names[1] === "proc") return true;
  if (NAMES.test(last) && !EXAMPLES.test(last)) return true;
  return names.some(
    (name, at) =>
      FOLDERS.has(name) ||
      (name === ".config" && BELOW_CONFIG.has(names[at + 1] ?? "")) ||
      (name === ".docker" && names[at + 1] === "config.json"),
  );
}
