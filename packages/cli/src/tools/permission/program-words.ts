/**
 * What the words of some programs mean, as far as a rule can be evaded without it. Of any other program nothing is
 * known: a rule that denies then asks whenever the command could be meant.
 */

/** Programs whose words other than options are operands, in any order. */
const OPERANDS: ReadonlySet<string> = words(
  `cat tac head tail wc nl cut paste ls dir rm rmdir unlink shred mkdir touch cp mv ln install chmod chown chgrp stat
  file du df less more vi vim nvim nano emacs ed tee dd truncate split sort uniq diff cmp grep egrep fgrep rg sed awk
  strings hexdump od xxd base64 md5sum sha1sum sha256sum readlink realpath tree open xdg-open code scp rsync tar zip
  unzip gzip gunzip bzip2 xz zcat kill pkill killall curl wget echo source .`,
);

export function takesOperands(program: string): boolean {
  return OPERANDS.has(program);
}

/** Of npm, `npm help npm`: it also takes any unambiguous start of these. */
const NPM_ALIASES = new Map(
  `author:owner home:docs issues:bugs info:view show:view v:view find:search s:search se:search add:install i:install
  in:install ins:install inst:install insta:install instal:install isnt:install isnta:install isntal:install
  isntall:install unlink:uninstall remove:uninstall rm:uninstall r:uninstall un:uninstall rb:rebuild list:ls la:ll
  ln:link create:init innit:init it:install-test cit:install-ci-test sit:install-ci-test clean-install-test:install-ci-test
  u:update up:update upgrade:update udpate:update c:config tst:test t:test ddp:dedupe run-script:run rum:run urn:run
  clean-install:ci install-clean:ci isntall-clean:ci ic:ci x:exec why:explain verison:version hlep:help
  dist-tags:dist-tag ogr:org add-user:adduser`
    .split(/\s+/u)
    .map((pair) => pair.split(":") as [string, string]),
);
const SUBCOMMANDS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  [
    "npm",
    words(
      `access adduser audit bugs cache ci completion config dedupe deprecate diff dist-tag docs doctor edit exec explain
      explore find-dupes fund get help help-search init install install-ci-test install-test link ll login logout ls org
      outdated owner pack ping pkg prefix profile prune publish query rebuild repo restart root run sbom search set
      shrinkwrap star stars start stop team test token undeprecate uninstall unpublish unstar update version view whoami`,
    ),
  ],
  // Any other may be an alias of the user's or of the repository's.
  [
    "git",
    words(
      `add am annotate apply archive bisect blame branch bundle cat-file check-ignore checkout cherry cherry-pick clean
      clone commit config count-objects describe diff diff-files diff-index diff-tree difftool fetch filter-branch
      for-each-ref format-patch fsck gc grep hash-object help init log ls-files ls-remote ls-tree maintenance merge
      merge-base merge-tree mergetool mv name-rev notes prune pull push range-diff rebase reflog remote repack replace
      request-pull rerere reset restore rev-list rev-parse revert rm shortlog show show-branch show-ref sparse-checkout
      stash status submodule switch symbolic-ref tag update-index update-ref var verify-commit verify-tag version
      whatchanged worktree write-tree`,
    ),
  ],
]);

/** Null if it is not known whether the program has subcommands. */
export function isSubcommand(program: string, word: string): boolean | null {
  return SUBCOMMANDS.get(program)?.has(canonical(program, word)) ?? null;
}

/** The full name of a subcommand that has several. */
export function canonical(program: string, word: string): string {
  return (program === "npm" ? NPM_ALIASES.get(word) : undefined) ?? word;
}

/** Whether git may mean the same by these: `main` by `HEAD:main`, `refs/heads/main` or `@`, `origin` by its address. */
export function mayBeRef(subcommand: string, at: number, want: string, given: string): boolean {
  const isRemote = at === 1 && /^(?:push|pull|fetch)$/u.test(subcommand);
  if (given.split(/[:/+=]/u).includes(want)) return true;
  return isRemote ? /[/:]|^\.+$/u.test(given) : /^\+?(?:head|@)/u.test(given);
}

/** A subcommand that is also a program: `/usr/lib/git-core/git-push`, `docker-compose`. */
export function splitName(word: string): string[] {
  const [, program, subcommand] = /(?:^|\/)(git|docker|cargo|kubectl)-([a-z][a-z-]*)$/u.exec(word) ?? [];
  return program === undefined ? [word] : [program, subcommand!];
}

const TAR = /^(?:g|bsd|gnu)?tar$/u;
/** Bundled letters that run no program. */
const HARMLESS_BUNDLE = /^[cfhjJkmprtuvxzZ]+$/u;
const MAKE = /^(?:g|b|n|p|re)?make$/u;
/** Programs for which a word that begins with `@` is a name. Many others read more options from that file. */
const NAMES_WITH_AT = /^(?:git|npm|npx|pnpm|pnpx|yarn|bun|bunx|deno|corepack|echo)$/u;

/**
 * An option that does not look like one: `tar cfI a.tar sh x`, `gcc @options`, `make SHELL=x`. `before` is the word
 * before it: `sudo tar cfI`.
 */
export function isHiddenOption(before: string, program: string, word: string): boolean {
  if (TAR.test(before)) return !HARMLESS_BUNDLE.test(word);
  if (MAKE.test(program)) return word.includes("=");
  return word.startsWith("@") && !NAMES_WITH_AT.test(program);
}

/** Programs that run other commands, given as words or as text. */
const RUNNERS: ReadonlySet<string> = words(
  `env command builtin exec eval nohup nice ionice chrt taskset time timeout setsid stdbuf unbuffer sudo doas su runuser
  xargs parallel watch entr sh bash dash zsh ksh fish busybox toybox trap chroot unshare nsenter ssh script flock strace
  ltrace gdb find npx bunx`,
);
const SHELL = /^(?:ba|da|z|k|fi)?sh$/u;
const READS_WORDS = /^(?:xargs|parallel|find)$/u;
const LEAVES_FOLDER = /^(?:find|xargs|parallel|ssh|su|runuser|chroot|nsenter|unshare)$/u;
const MAY_LEAVE_FOLDER = /^(?:env|sudo|doas)$/u;

export function isRunner(program: string): boolean {
  return RUNNERS.has(program);
}

/** Whether a runner adds operands to a command that are not in the line: `xargs rm`, `find -exec rm '{}'`. */
export function addsOperands(program: string): boolean {
  return READS_WORDS.test(program);
}

/** Whether a runner takes a command from elsewhere: `echo git push | sh`, `xargs env`, `find -exec '{}'`. */
export function readsCommand(program: string, args: readonly string[]): boolean {
  if (program === "find")
    return args.some((word, at) => word.includes("{}") && /^-(?:exec|ok)/u.test(args[at - 1] ?? ""));
  if (READS_WORDS.test(program)) return args.some((word) => RUNNERS.has(word) || /^(?:-[IiJ]|--repl|:::)/u.test(word));
  if (!SHELL.test(program) || args.some((word) => /^[-+]\w*c/u.test(word))) return false;
  const script = args.find((word) => !/^[-+]/u.test(word));
  return script === undefined || /^\/(?:dev|proc)\//u.test(script) || args.some((word) => /^-\w*s/u.test(word));
}

/** Whether a runner may run its command in another folder, where a relative path means something else. */
export function mayChangeFolder(program: string, options: readonly string[]): boolean {
  if (LEAVES_FOLDER.test(program)) return true;
  return MAY_LEAVE_FOLDER.test(program) && options.some((word) => word.startsWith("-"));
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/u));
}
