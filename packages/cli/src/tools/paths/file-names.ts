/**
 * The names in a path, as a file system may take them that does not tell them apart: without case (`.ENV`, `.ſsh`),
 * without characters that nobody sees (`.g\u200Cit`), and as Windows reads them (`.git.`, `.env::$DATA`, `GIT~1`).
 * For guards: to take two names for one asks once too often at worst.
 */
export function foldedNames(path: string): string[] {
  return path
    .normalize("NFC")
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "")
    .toUpperCase()
    .toLowerCase()
    .split(/[/\\]/u)
    .map((name) =>
      name === "." || name === ".." ? name : name.replace(/(?<=.):.*$/su, "").replace(/(?<=[^. ])[. ]+$/u, ""),
    )
    .map((name) => name.replace(/^(git|env|ssh)~\d$/u, ".$1"));
}

const COPY =
  /(?:~|#|\.(?:bak|backup|old|orig|original|save|saved|copy|tmp|temp|new|sw[a-p]|\d+|gz|bz2|xz|zst|zip|tar|tgz|enc|disabled|off)|[ ._-]*\(?(?:copy|backup|bak|old|\d+)\)?)$/u;

/** A name, and what it may be a copy of: `id_rsa.bak`, `.netrc~`, `#auth.json#`, `.id_rsa.swp`, `kubeconfig (1)`. */
export function originalsOf(name: string): string[] {
  const all = [name];
  for (let here = name.replace(/^(?:#|\.#|copy of )/u, ""); ; ) {
    if (!all.includes(here)) all.push(here);
    const next = here.replace(COPY, "");
    if (next === here || next === "") break;
    // An editor puts a dot before the name of what it keeps.
    if (/\.sw[a-p]$/u.test(here) && next.startsWith(".")) all.push(next.slice(1));
    here = next;
  }
  return all;
}
