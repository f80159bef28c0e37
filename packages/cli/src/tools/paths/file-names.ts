/** Equal for texts that some file system treats as the same name: case (`.ENV`, `.ſsh`), invisible characters. */
export function foldText(text: string): string {
  if (/^[\0-\x7f]*$/.test(text)) return text.toLowerCase();
  return text
    .normalize("NFC")
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "")
    .toUpperCase()
    .toLowerCase();
}

/** Where systems show files a second time, under names that do not say which. Folded. */
const OTHER_ROOTS = ["/proc", "/dev/fd", "/.vol", "/system/volumes/data"];

/** Patterns for such paths, with `wild` for anything below. */
export function otherRoots(wild: string): readonly string[] {
  return OTHER_ROOTS.flatMap((root) => [root, `${root}/${wild}`]);
}

/** `names`: of an absolute path, folded. */
export function isOtherRoot(names: readonly string[]): boolean {
  const path = `${names.join("/")}/`;
  return OTHER_ROOTS.some((root) => path.startsWith(`${root}/`));
}

/**
 * Splits a path into names, folded so that any two names some file system treats as equal compare equal: case (`.ENV`,
 * `.ſsh`), invisible characters (`.g\u200Cit`) and Windows forms (`.git.`, `.env::$DATA`, `GIT~1`). For guards only:
 * confusing two names costs at most one needless question.
 */
export function foldedNames(path: string): string[] {
  return foldText(path)
    .split(/[/\\]/u)
    .map((name) =>
      name === "." || name === ".." ? name : name.replace(/(?<=.):.*$/su, "").replace(/(?<=[^. ])[. ]+$/u, ""),
    )
    .map((name) => name.replace(/^(git|env|ssh)~\d$/u, ".$1"));
}

const COPY =
  /(?:~|#|\.(?:bak|backup|old|orig|original|save|saved|copy|tmp|temp|new|sw[a-p]|\d+|gz|bz2|xz|zst|zip|tar|tgz|enc|disabled|off)|[ ._-]*\(?(?:copy|backup|bak|old|\d+)\)?)$/u;

/**
 * A name and the names it may be a copy of: `id_rsa.bak`, `.netrc~`, `#auth.json#`, `.id_rsa.swp`, `kubeconfig (1)`.
 */
export function originalsOf(name: string): string[] {
  const all = [name];
  for (let here = name.replace(/^(?:#|\.#|copy of )/u, ""); ; ) {
    if (!all.includes(here)) all.push(here);
    const next = here.replace(COPY, "");
    if (next === here || next === "") break;
    // Vim puts a dot before the name of a swap file.
    if (/\.sw[a-p]$/u.test(here) && next.startsWith(".")) all.push(next.slice(1));
    here = next;
  }
  return all;
}
