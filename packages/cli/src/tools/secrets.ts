const NAMES =
  /^(?:\.env(?:\..+)?|.+\.env|\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.git-credentials|\.htpasswd|credentials(?:\.json)?|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.+\.(?:pem|key|p12|pfx|keystore|jks|kdbx))$/u;
const EXAMPLES = /^\.env\.(?:example|sample|template|dist|defaults?)$/u;
const FOLDERS: ReadonlySet<string> = new Set([".ssh", ".gnupg", ".aws", ".kube", ".azure", ".password-store"]);
/** Our own is not secret, but says what the agent may do: it must not be for the agent to change. */
const BELOW_CONFIG: ReadonlySet<string> = new Set(["gh", "gcloud", "op", "holdfast"]);

/** Whether a file or a folder, by its name alone, is likely to hold what is nobody else's business. Asking once too often does less harm than once too little. */
export function isSecret(path: string): boolean {
  // Some file systems do not tell upper from lower case.
  const names = path.normalize("NFC").toLowerCase().split(/[/\\]/u);
  const last = names.at(-1) ?? "";
  if (NAMES.test(last) && !EXAMPLES.test(last)) return true;
  return names.some(
    (name, at) =>
      FOLDERS.has(name) ||
      (name === ".config" && BELOW_CONFIG.has(names[at + 1] ?? "")) ||
      (name === ".docker" && names[at + 1] === "config.json"),
  );
}
