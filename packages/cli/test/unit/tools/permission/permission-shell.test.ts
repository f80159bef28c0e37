import { describe, expect, test } from "vitest";
import { checkRule, decide, type Policy } from "../../../../src/tools/permission/decide.ts";

const cwd = "/work/project";

const decision = (command: string, policy: Partial<Policy>, platform = "linux") =>
  decide(
    { name: "shell", input: { command } },
    { cwd, home: "/home/me", platform, policy: { allow: [], ask: [], deny: [], ...policy } },
  );
const verdict = (...given: Parameters<typeof decision>): string => decision(...given).verdict;

describe("a rule that denies", () => {
  test.each([
    ["shell(git push*)", "git push origin main"],
    ["shell(git push*)", "git pushx --all"],
    ["shell(git pu*)", "git push origin main"],
    ["shell(npm run deploy)", "npm run -s deploy"],
    ["shell(npm run deploy)", "npm -s run deploy"],
    ["shell(npm run deploy)", "npm run --prefix app deploy --now"],
    ["shell(git push)", "git -C . push"],
    ["shell(git push)", "git --git-dir .git --no-pager push"],
    ["shell(git push --force)", "git push origin main --force"],
    ["shell(git push --force)", "git push --forc origin"],
    ["shell(git push --force)", "git push --force-with-lease"],
    ["shell(rm -rf)", "rm -fr x"],
    ["shell(rm -rf)", "rm -r -v -f x"],
    ["shell(rm -rf *)", "rm x -rf"],
    ["shell(rm *)", "rm"],
    ["shell(git * main)", "git push origin main"],
    ["shell(git push)", "GIT push"],
    ["shell(git push)", "/usr/bin/git push"],
    ["shell(git push)", "./node_modules/../bin/git push"],
    ["shell(rm build/*)", "rm ./build/a"],
    ["shell(rm build/*)", "rm src/../build//a"],
    ["shell(rm build/*)", `rm ${cwd}/build/a`],
    ["shell(rm build/*)", "rm BUILD/a"],
    ["shell(rm build/*)", "rm -v b?ild/a"],
    ["shell(rm build/*)", "rm [b]uild/a"],
    ["shell(rm /home/me/*)", "rm ~/x"],
    ["shell(rm ~/*)", "rm /home/me/x"],
    ["shell(git push)", "git pu*"],
    ["shell(npm run deploy)", "npm *"],
    ["shell(find * -delete)", "find . -name x -delete"],
    ["shell(*)", "echo $(date)"],
    ["shell(**)", "ls"],
    ["shell(git push)", "env git push"],
    ["shell(git push)", "sudo -u me git push"],
    ["shell(git push)", "bash -lc 'cd x && git push'"],
    ["shell(git push)", "nohup timeout 5 git push origin"],
    ["shell(git push)", `sh -c "sh -c 'git push'"`],
    ["shell(git push)", "find . -name x -exec git push ';'"],
    ["shell(git add . && git push)", "git add . ; git push"],
  ])("%s denies: %s", (rule, command) => {
    for (const allow of [["*"], ["shell"], [`shell(=${command})`]])
      expect(verdict(command, { allow, deny: [rule] }), allow[0]).toBe("deny");
    expect(verdict(command, { allow: ["*"], ask: [rule] })).toBe("ask");
  });

  test.each([
    ["shell(git push)", "git log push"],
    ["shell(git push)", "git status"],
    ["shell(npm run deploy)", "npm run test deploy"],
    ["shell(npm run deploy)", "npm run -s build"],
    ["shell(rm -rf)", "rm -r x"],
    ["shell(rm -rf)", "rm x"],
    ["shell(rm build/*)", "rm src/a"],
    ["shell(git push)", "echo git push"],
    ["shell(git push)", "grep 'git push' README.md"],
    ["shell(find * -delete)", "find . -type d -empty -ls -mtime 3"],
    ["shell(=git push)", "git push origin"],
  ])("%s does not deny: %s", (rule, command) => {
    const allow = [
      "shell(git **)",
      "shell(npm **)",
      "shell(rm **)",
      "shell(echo *)",
      "shell(grep *)",
      "shell(find **)",
    ];
    expect(verdict(command, { allow, deny: [rule] })).toBe("allow");
  });

  test.each([
    ["shell(git push)", "git -c alias.p=push p"],
    ["shell(git push)", "git --exec-path=/tmp/x status"],
    ["shell(git push --force)", "git push -f"],
    ["shell(rm -rf)", "rm --recursive --force x"],
    ["shell(git push)", "docker run image git push"],
    ["shell(git push)", "npm exec -c 'git push'"],
    ["shell(foo deploy)", "foo --pair a b deploy"],
    ["shell(git push)", `git ${"a ".repeat(2000)}`],
  ])("where %s may be meant, only the whole command allows: %s", (rule, command) => {
    const [name] = command.split(" ");
    for (const allow of [["*"], ["shell"], [`shell(${name} **)`]])
      expect(verdict(command, { allow, deny: [rule] }), allow[0]).toBe("ask");
    expect(verdict(command, { allow: [`shell(=${command})`], deny: [rule] })).toBe("allow");
  });
});

describe("a rule that allows", () => {
  test.each([
    ["shell(eslint *.js)", "eslint a.js", "allow"],
    ["shell(eslint *.js)", "eslint --rulesdir=x.js", "ask"],
    ["shell(eslint *.js)", "eslint -cx.js", "ask"],
    ["shell(eslint *.js)", "eslint *.js", "ask"],
    ["shell(eslint *.js)", "eslint ?.js", "ask"],
    ["shell(eslint src/*.js)", "eslint src/*.js", "allow"],
    ["shell(eslint *)", "eslint a b", "allow"],
    ["shell(eslint *)", "eslint a --fix", "ask"],
    ["shell(eslint *)", "eslint '--fix'", "ask"],
    ["shell(eslint *)", "eslint *", "ask"],
    ["shell(vim *.txt)", "vim +!sh.txt", "ask"],
    ["shell(eslint **)", "eslint --fix a", "allow"],
    ["shell(eslint **)", "eslint", "allow"],
    ["shell(eslint -*)", "eslint --fix", "allow"],
    ["shell(eslint -*)", "eslint a", "ask"],
    ["shell(eslint --format=*)", "eslint --format=json", "allow"],
    ["shell(eslint --format=*)", "eslint --format=./evil.js", "ask"],
    ["shell(tar * x)", "tar -I x", "ask"],
    ["shell(*)", "ls -l", "allow"],
    ["shell(**)", "ls -l | wc -l", "allow"],
    ["shell(git push)", "git push --force", "ask"],
  ])("%s on %s: %s", (rule, command, wanted) => {
    expect(verdict(command, { allow: [rule] })).toBe(wanted);
  });

  test.each([
    "cd / && rm build/a",
    "cd ..; rm build/a",
    "command cd / && rm build/a",
    "pushd / && rm build/a",
    "export PATH=/tmp; rm build/a",
    "alias rm=sh; rm build/a",
    "set -- a; rm build/a",
    "ls | cd / ; rm build/a",
    "cd a\nrm build/a",
  ])("does not count for a command behind one that changes what it means: %s", (command) => {
    const allow = "cd pushd export alias set command ls".split(" ").map((name) => `shell(${name} **)`);
    expect(verdict(command, { allow: [...allow, "shell(rm build/*)"] })).toBe("ask");
    expect(verdict(command, { allow: ["shell"], deny: ["shell(git push)"] })).toBe("ask");
    expect(verdict(command, { allow: ["shell"] })).toBe("allow");
    expect(verdict(command, { allow: [`shell(=${command})`] })).toBe("allow");
  });

  test("may be followed by a change of folder, and by one to the folder where it is", () => {
    const allow = ["shell(cd *)", "shell(rm build/*)"];
    for (const command of ["rm build/a && cd /", `cd ${cwd} && rm build/a`, "cd . && rm build/a"])
      expect(verdict(command, { allow }), command).toBe("allow");
  });
});

/** Each runs `git push`, or something that its words name, by way of another command. */
const RUNNING = String.raw`
awk 'BEGIN{system("git push")}'
awk 'BEGIN{"git push"|getline}'
gawk -f x.awk
mawk 'BEGIN{print|"sh"}'
sed '1e git push' x
sed -n '1e git push' x
sed -e 's/x/git push/e' x
sed -i 's/a/b/w .git/hooks/pre-push' x
sed -n 1p -f x
gsed -s x y
tar --checkpoint=1 --checkpoint-action=exec=sh -cf x y
tar -I sh -xf x
tar --use-compress-program=sh -xf x
tar --to-command=sh -xf x
tar -cf x --rsh-command=sh h:y
git grep -Osh x
git grep --open-files-in-pager=sh x
git grep --open=sh x
git -c alias.x=!sh x
git -c core.pager=sh log
git --exec-path=. status
git -p log
git log --ext-diff -p
git log --ext
git diff --ext-diff
git show --textconv x
git diff --output=.git/hooks/pre-push
git difftool -x sh
git mergetool
git bisect run sh x
git rebase -x sh main
git rebase --exec sh main
git submodule foreach sh
git commit -m x
git clone ext::sh x
git fetch --upload-pack=sh x
git ls-remote --upload-pack=sh x
git archive --remote=x --exec=sh main
git filter-branch --tree-filter sh
git config alias.x !sh
git maintenance run
git pull
git checkout x
git help log
split --filter=sh x
split -l 1 --filter=sh x
csplit x 1
find . -exec sh x +
find . -execdir sh x +
find . -ok sh x +
find . -okdir sh x +
find . -fprintf .git/hooks/pre-push x
find . *
fd -x sh
fdfind --exec sh
ls | xargs git push
xargs -a x sh
parallel sh
env git status
env -S 'sh x'
nohup ls
nice ls
ionice ls
chrt 1 ls
taskset 1 ls
time ls
timeout 5 ls
setsid ls
stdbuf -o0 ls
unbuffer ls
watch ls
entr ls
flock x ls
strace ls
ltrace ls
script -c ls
ssh h ls
ssh -o ProxyCommand=sh h
scp -S sh x y
sftp -S sh h
rsync -e sh x y
rsync --rsync-path=sh x h:y
mosh h
sudo ls
doas ls
su -c ls
runuser -u x ls
chroot x ls
unshare ls
nsenter ls
sh x
sh -c ls
bash -c ls
dash x
zsh -c ls
ksh x
fish -c ls
busybox sh
toybox sh
eval ls
exec ls
. x
source x
trap ls EXIT
command ls
builtin echo
alias ls=sh
vim -c '!sh' x
vim +!sh x
vi x
nvim -c '!sh'
ex -c '!sh'
ed x
emacs --eval x
nano -s sh x
less x
less +!sh x
more x
man ls
man -P sh ls
info ls
perl -e 'system("sh")'
python3 -c 'import os'
python -m x
node -e x
deno run x
bun x
ruby -e x
php -r x
lua -e x
tclsh x
expect -c x
Rscript -e x
julia -e x
java x
osascript -e x
make
make -f x
cmake -P x
ninja
npm exec sh
npm test
npm run x
npx x
yarn x
pnpm x
bunx x
pip install x
cargo run
go run x
gradle x
mvn x
docker run x
docker exec x sh
podman run x
kubectl exec x sh
crontab x
at now
batch
systemctl start x
systemd-run ls
gdb -ex '!sh'
gdb ls
sqlite3 x '.shell sh'
psql -c '\! sh'
mysql -e 'system sh'
ftp x
zip x y -T -TT sh
7z x y
unzip x
gcc -wrapper sh x
ld -plugin x
openssl engine x
nmap --script x
tcpdump -z sh
tmux new sh
screen sh
xterm -e sh
dd of=.git/hooks/pre-push
cp x .git/hooks/pre-push
mv x ls
ln -s /usr/bin/git ls
install x y
tee x
curl -o x y
wget --use-askpass=sh x
sort --compress-program=sh x
sort --comp=sh x
sort -o .git/hooks/pre-push x
sort -uo x y
sort *
uniq x .git/hooks/pre-push
uniq *
rg --pre sh x
rg --pre=sh x
rg --hostname-bin=sh x
rg -z x
grep --filter=sh x
diff -l x y
diff --paginate x y
tree -R -L 1 -o x
base64 -o x y
test -v 'a[$(id)]'
printf -v 'a[$(id)]' x
printf %d 'a[$(id)]'
./ls
./git status
/tmp/ls
bin/cat x
~/ls
LS x
unknown
X=1 ls
ls > x
ls &
$(ls)
ls <(sh)
`
  .trim()
  .split("\n");

describe("beside a rule that denies a command", () => {
  test(`${RUNNING.length} lines that run others or could: nothing that allows all commands lets one pass`, () => {
    expect(RUNNING.length).toBeGreaterThanOrEqual(116);
    expect(new Set(RUNNING).size).toBe(RUNNING.length);
    const passed = RUNNING.flatMap((line) =>
      ["*", "shell", "shell(*)", "shell(**)"].flatMap((rule) =>
        [{ deny: ["shell(git push)"] }, { ask: ["shell(rm -rf)"] }].flatMap((strict) =>
          verdict(line, { allow: [rule], ...strict }) === "allow" ? [`${rule}: ${line}`] : [],
        ),
      ),
    );
    expect(passed).toEqual([]);
    for (const line of RUNNING) expect(verdict(line, { allow: ["shell"] }), "nothing is denied").toBe("allow");
  });

  test.each([
    "ls -la src",
    "cat a b | head -n 5 | wc -l",
    "grep -rn 'x y' src",
    "rg -n x src",
    "find . -name '*.ts' -type f",
    "sed -n 10,20p a.ts",
    "sed -n '1,$p' a.ts",
    "git status && git diff --stat && git log --oneline -5",
    "git show HEAD:a.ts 2>/dev/null",
    "/bin/ls; /usr/bin/cat x",
    "sort -u a | uniq -c",
    "mkdir -p a/b; touch a/b/c; rm -r a",
    "command -v node",
    "printf '%s\\n' a",
    "cd src",
    "echo done",
  ])("what is known to run no other is still allowed: %s", (line) => {
    for (const rule of ["*", "shell", "shell(*)"])
      expect(verdict(line, { allow: [rule], deny: ["shell(git push)"] }), rule).toBe("allow");
  });

  test("a line may be allowed in parts, by a rule for all and a rule for one", () => {
    const policy = { allow: ["*", "shell(npm test)"], deny: ["shell(git push)"] };
    expect(decision("ls && npm test", policy)).toMatchObject({ verdict: "allow", rule: "*, shell(npm test)" });
    expect(verdict("ls && npm run x", policy)).toBe("ask");
  });

  test("a rule about files restricts no command", () => {
    expect(verdict("npm test", { allow: ["*"], deny: ["read(.env)"] })).toBe("allow");
  });
});

describe("on Windows, where cmd.exe reads other words", () => {
  const windows = (command: string, policy: Partial<Policy>): string => verdict(command, policy, "win32");

  test("rules that look at words are refused, with the reason", () => {
    for (const kind of ["allow", "ask", "deny"] as const) {
      for (const rule of ["shell(npm test)", "shell(npm *)", "shell(*)"])
        expect(checkRule(rule, kind, "win32"), `${kind} ${rule}`).toContain("cmd.exe");
      for (const rule of ["shell", "*", "read(src/**)"]) expect(checkRule(rule, kind, "win32")).toBeNull();
      expect(checkRule("shell(npm *)", kind, "linux")).toBeNull();
    }
    expect(checkRule("shell(=npm test)", "allow", "win32")).toBeNull();
    expect(checkRule("shell(=git push)", "deny", "win32")).toContain("cmd.exe");
  });

  test("such a rule allows nothing and denies everything, should one come from elsewhere", () => {
    for (const rule of ["shell(npm *)", "shell(npm test)", "shell(*)"]) {
      expect(windows("npm test", { allow: [rule] }), rule).toBe("ask");
      expect(windows("dir", { allow: ["shell"], deny: [rule] }), rule).toBe("deny");
    }
    expect(windows("npm test", { allow: ["shell"] })).toBe("allow");
    expect(windows("npm test", { allow: ["shell(=npm test)"] })).toBe("allow");
    expect(windows("npm test & del x", { allow: ["shell(=npm test)"] })).toBe("ask");
  });

  test("the suggested rule is one that is taken", () => {
    const { suggestion } = decision("npm test", {}, "win32");
    expect(suggestion).toBe("shell(=npm test)");
    expect(windows("npm test", { allow: [suggestion] })).toBe("allow");
  });
});
