import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { validateAnthropic } from "@holdfast/testkit";
import { type AnthropicMessage, openStore, type Reading, type Store } from "holdfast";
import { Marked } from "marked";
import { afterEach, describe, expect, test } from "vitest";
import { place, treeOf } from "../../../../holdfast/test/place.ts";
import { answerHtml, isSafeLink } from "../../../src/export/answer-html.ts";
import type { Document } from "../../../src/export/document.ts";
import { exportSession } from "../../../src/export/export.ts";
import { type Format, formatFor, formats } from "../../../src/export/format.ts";
import { htmlOf } from "../../../src/export/html.ts";
import { fence, markdownOf } from "../../../src/export/markdown.ts";
import { escapedHtml } from "../../../src/export/markdown-html.ts";
import { writeOutput } from "../../../src/export/output-file.ts";
import { redactDeep } from "../../../src/export/redact.ts";
import { makeExporter } from "../../../src/screen/export-file.ts";
import { titleForFork } from "../../../src/store/session-id.ts";
import type { Item } from "../../../src/transcript/item.ts";

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

function somewhere(): string {
  const here = place();
  opened.push({ [Symbol.asyncDispose]: async () => here[Symbol.dispose]() });
  return here.path;
}

const at = "2026-11-15T10:00:00.000Z";
const common = { at, turn: 1 };
const prompt = (text: string): Item => ({ ...common, id: "p", kind: "prompt", text });
const answer = (text: string): Item => ({ ...common, id: "a", kind: "answer", text });
const call = (input: unknown, output: string): Item => ({
  ...{ ...common, id: "c", kind: "call", call: "c", name: "shell", input, state: "done", output },
});
const documentWith = (...items: Item[]): Document => ({
  title: "t",
  facts: [["Folder", "/x"]],
  warnings: [],
  items,
  queued: [],
});
const html = (document: Document): string => [...htmlOf(document)].join("");
const markdown = (document: Document): string => [...markdownOf(document)].join("");

/**
 * Every tag of a page, with its attributes. Good enough where all else is escaped: a tag that is not known here fails
 * the test.
 */
function tagsOf(page: string): string[] {
  return [...page.replace(/<style>.*?<\/style>/s, "").matchAll(/<[^>]*>/g)].map(([tag]) => tag);
}
const KNOWN =
  /^<\/?(?:!doctype html|html|head|body|meta|title|header|main|section|article|footer|h[1-6]|dl|dt|dd|p|div|span|pre|code|details|summary|time|figure|figcaption|img|a|em|strong|del|ul|ol|li|hr|br|blockquote|table|thead|tbody|tr|th|td)(?: [a-z-]+="[^"<>]*")*>$/;

const EVIL = [
  "<script>alert(1)</script>",
  "<img src=x onerror=alert(1)>",
  "</pre></code></details></article><script src=//evil></script>",
  "<svg/onload=alert(1)>",
  "[x](javascript:alert(1)) [y](vbscript:x) [z](data:text/html,<script>alert(1)</script>)",
  "[x](JaVaScRiPt&colon;alert(1)) [y](&#106;avascript:alert(1)) [z](java\nscript:alert(1))",
  "![i](https://evil.example/pixel.png) ![j](javascript:alert(1))",
  "\\![i](https://evil.example/a.png) \\\\![j](https://evil.example/b.png) ![k][l]\n\n[l]: https://evil.example/c.png",
  '<a href="javascript:alert(1)">x</a> <iframe srcdoc="<script>alert(1)</script>">',
  '[a](https://x.example/"onmouseover="alert(1))',
  '![a"onerror="alert(1)](x)',
  '```html" onload="x\n<script>alert(1)</script>\n```',
  "`<script>` <!-- <script> --> <![CDATA[<script>]]> <?php ?>",
  "| a | b |\n|---|---|\n| ` | <script>alert(1)</script> | ` |",
  "- a\n  ```\n  code\n<script>alert(1)</script>",
  "> ```\n<script>alert(1)</script>",
  "# a ` b\n<script>alert(1)</script> ` c",
  "\\`<script>alert(1)</script>\\`",
  "[a]: <javascript:alert(1)>\n[a]",
  "<https://ok.example> <javascript:alert(1)> www.ok.example a@b.example",
  "&lt;script&gt; &#60;script&#62;",
  "~~~\n<b>\n~~~~\n<script>alert(1)</script>",
];

describe("C25: what a message holds can do nothing in a page", () => {
  test.each(EVIL)("%j", (text) => {
    const page = html({
      ...documentWith(prompt(text), answer(text), call({ command: text }, text), {
        ...common,
        id: "n",
        kind: "note",
        text,
      }),
      title: text,
      facts: [[text, text]],
      warnings: [text],
    });
    for (const tag of tagsOf(page)) {
      expect(tag).toMatch(KNOWN);
      expect(tag.replaceAll(/"[^"]*"/g, '""')).not.toMatch(/ (?:on[a-z]+|style|srcdoc|formaction)=/i);
      const href = /^<a href="([^"]*)"/.exec(tag)?.[1];
      if (tag.startsWith("<a ")) expect(href).toMatch(/^(?:https?:\/\/|mailto:)/i);
      if (tag.startsWith("<img")) expect(tag).toContain('src="data:image/');
    }
  });

  test.each(EVIL)("nor in Markdown that is rendered with raw HTML: %j", (text) => {
    const rendered = new Marked({ async: false }).parse(
      markdown(documentWith(prompt(text), answer(text), call({ command: text }, text))),
    ) as string;
    expect(rendered).not.toMatch(/<(?:script|svg|iframe|img)/i);
  });

  test("escape sequences and what turns the direction of writing are in no format for people", () => {
    const text = "a\u001b[2Jb\u001b]52;c;aGk=\u0007c\u202ed\u2066e\u0000f\u009b31mg";
    const document = {
      ...documentWith(prompt(text), answer(text), call({ command: text }, text)),
      title: text,
      facts: [[text, text]] as const,
    };
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    const harmful = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;
    expect(html(document)).not.toMatch(harmful);
    expect(markdown(document)).not.toMatch(harmful);
  });

  test("the page forbids scripts, and anything from elsewhere; its own style is allowed by its hash", () => {
    const page = html(documentWith());
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)?.[1];
    expect(policy).toMatch(
      /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]{44}'; img-src data:; base-uri 'none'; form-action 'none'$/,
    );
    expect(page).not.toContain("<script");
  });

  test("images are shown if they are rasters, and only named if they are anything else", () => {
    const file = (mediaType: string, data: string) => ({ mediaType, data, name: `a"><script>.x` });
    const page = html(
      documentWith({
        ...prompt(""),
        files: [
          file("image/png", "iVBORw0KGgo="),
          file("image/svg+xml", "PHN2Zz4="),
          file("image/png", 'x" onerror="y'),
        ],
      } as Item),
    );
    expect([...page.matchAll(/<img /g)].length).toBe(1);
    expect(page).toContain('src="data:image/png;base64,iVBORw0KGgo="');
    for (const tag of tagsOf(page)) expect(tag).toMatch(KNOWN);
  });

  test("links: http, https and mail, and nothing that only looks like it", () => {
    for (const href of ["https://a.example/x?y=1", "HTTP://a.example", "mailto:a@b.example"])
      expect(isSafeLink(href)).toBe(true);
    for (const href of [
      "javascript:alert(1)",
      " javascript:x",
      "//evil.example",
      "file:///etc/passwd",
      "data:text/html,x",
      "https:javascript",
      "\u0001https://x",
      "",
    ]) {
      expect(isSafeLink(href)).toBe(false);
    }
  });

  test("nesting that is deeper than any reader's stack is shown as it is written", () => {
    const text = `${">".repeat(20_000)} deep`;
    expect(answerHtml(text)).toContain("deep");
  });
});

describe("Markdown", () => {
  test.each(["```", "````\nx\n````", "~~~", "a\n```js\nb", "`".repeat(30)])("a fence that %j cannot close", (text) => {
    const document = documentWith(call(undefined, `${text}\n# not a heading`), answer("after"));
    const tokens = new Marked().lexer(markdown(document));
    expect(tokens.filter(({ type }) => type === "code")).toMatchObject([{ text: `${text}\n# not a heading` }]);
    expect(tokens.filter(({ type }) => type === "heading").map((token) => "text" in token && token["text"])).toEqual([
      "t",
      "Turn 1",
      "Model",
    ]);
  });

  test("a fence that an answer leaves open takes nothing of what follows", () => {
    const tokens = new Marked().lexer(markdown(documentWith(answer("```js\nlet a"), prompt("b"), answer("c"))));
    expect(tokens.filter(({ type }) => type === "heading").length).toBe(5);
  });

  test("code stays as it is where it is code for certain", () => {
    const text = "```html\n<b>\n```\nuse `a<b>c` and a<b>c";
    expect(escapedHtml(text).markdown).toBe("```html\n<b>\n```\nuse `a<b>c` and a&lt;b>c");
  });

  test("what is incomplete, aside, or of unknown outcome says so", () => {
    const text = markdown(
      documentWith(
        { ...answer("I was sayi"), incomplete: true } as Item,
        { ...call({ command: "rm -rf build" }, ""), state: "unknown", aside: "hidden from the model" } as Item,
      ),
    );
    expect(text).toContain("Incomplete");
    expect(text).toContain("`shell: rm -rf build` — outcome unknown _(hidden from the model)_");
  });

  test("C28: 50 MB are shortened with a word about it, in both, and the end is there", () => {
    const document = documentWith(
      call({}, `${"x".repeat(50_000_000)}the end`),
      answer(`${"y".repeat(50_000_000)}the end`),
    );
    for (const text of [markdown(document), html(document)]) {
      expect(text.length).toBeLessThan(1_000_000);
      expect(text).toContain("omitted here");
      expect([...text.matchAll(/the end/g)].length).toBe(2);
    }
    expect(fence("short", "text")).toBe("```text\nshort\n```\n");
  });
});

describe("a session", () => {
  const KEY = `sk-ant-api03-${"Ab3".repeat(31)}AA`;

  async function session(): Promise<{ store: Store; id: string; reading: Reading<AnthropicMessage>; path: string }> {
    const path = somewhere();
    const store = await openStore(path, { durability: "process", recordsToolStarts: true });
    opened.push(store);
    const session = await store.create<AnthropicMessage>({
      dialect: "anthropic",
      title: "Keys & <tags>",
      cwd: path,
    });
    const turn = await session.startTurn({ role: "user", content: `my key is ${KEY}` });
    const content = [
      { type: "thinking", thinking: `the key ${KEY}`, signature: "sig" },
      { type: "tool_use", id: "t1", name: "shell", input: { command: "env", api_key: "hunter2hunter2" } },
    ];
    await turn.append({ role: "assistant", content: content as never });
    await turn.tool("t1", () => `ANTHROPIC_API_KEY=${KEY}`);
    await turn.append({ role: "assistant", content: "Done." });
    await turn.end();
    await session.enqueue({ role: "user", content: "and then?" });
    // It stays open: whoever exports it has no lease.
    return { store, id: session.id, reading: session, path };
  }

  const all = async (store: Store, id: string, format: Format, redact = false): Promise<string> =>
    (await Array.fromAsync(exportSession(store, id, { format, redact }))).join("");

  test("jsonl: the whole journal, byte for byte as it stands there: epochs that were left, and messages of any size (C28)", async () => {
    const { store, id, path } = await session();
    const live = store.live(id)!;
    const turn = await live.startTurn({ role: "user", content: `é${"x".repeat(5_000_000)}` });
    await turn.end();
    await live.replace([], { reason: "clear" });
    const files = [...treeOf(join(path, "sessions", id))].filter(([name]) => name.endsWith(".jsonl"));
    expect(files.length).toBe(2);
    const stored = Buffer.from(files.map(([, text]) => text).join(""), "latin1").toString();
    // Not by `toBe`, which would print all of it.
    expect((await all(store, id, "jsonl")) === stored).toBe(true);
  });

  test("in its own dialect: the very messages", async () => {
    const { store, id, reading } = await session();
    expect(JSON.parse(await all(store, id, "messages"))).toEqual(reading.messages);
    expect(await all(store, id, "anthropic")).toBe(await all(store, id, "messages"));
  });

  test("C16: a session that is being written to is exported in every format, and no byte of it changes", async () => {
    const { store, id, path } = await session();
    const before = treeOf(join(path, "sessions"));
    for (const format of formats) expect((await all(store, id, format)).length).toBeGreaterThan(100);
    expect(treeOf(join(path, "sessions"))).toEqual(before);
  });

  test.each(formats)("--redact: no key is left in %s, and the shape is", async (format) => {
    const { store, id } = await session();
    expect(await all(store, id, format)).toContain(KEY);
    const text = await all(store, id, format, true);
    expect(text).not.toContain(KEY);
    expect(text).not.toContain("hunter2hunter2");
    expect(text).toContain("redacted");
    if (format === "jsonl") for (const line of text.trim().split("\n")) JSON.parse(line);
    else if (format !== "markdown" && format !== "html") expect(JSON.parse(text).length).toBeGreaterThan(2);
    // Reasoning that was signed over what is gone is gone too.
    if (format === "anthropic") {
      expect(text).not.toContain("thinking");
      expect(validateAnthropic([...JSON.parse(text), { role: "user", content: "go on" }])).toEqual([]);
    }
  });

  test("--redact: a key that was streamed in pieces is in no record, and what was said of it is in the page", async () => {
    const store = await openStore(somewhere(), { durability: "process", recordsToolStarts: true });
    opened.push(store);
    const session = await store.create<AnthropicMessage>({ dialect: "anthropic" });
    const turn = await session.startTurn({ role: "user", content: "go" });
    const { draft } = turn.request();
    draft.push({ text: `it is ${KEY.slice(0, 30)}` });
    await session.flush();
    draft.push({ text: `${KEY.slice(30)}, as you see` });
    await session.flush();
    await turn.abort({ by: "user" });
    const lines = await all(store, session.id, "jsonl", true);
    expect(lines.match(/"kind":"draft"/g)?.length).toBe(2);
    for (const piece of [KEY.slice(0, 30), KEY.slice(30)]) expect(lines).not.toContain(piece);
    const page = await all(store, session.id, "html", true);
    expect(page).toMatch(/it is \[redacted:[a-z-]+\], as you see/);
  });

  test.each(["jsonl", "markdown", "html"] as const)(
    "--redact: a key that a title was cut in is not in %s in part",
    async (format) => {
      const store = await openStore(somewhere(), { durability: "process", recordsToolStarts: true });
      opened.push(store);
      const session = await store.create<AnthropicMessage>({ dialect: "anthropic" });
      // Of what stands for a title, the library shows 80 characters: too little of this key to look like one.
      const key = `AIza${"Sy7".repeat(11)}Sy`;
      const turn = await session.startTurn({ role: "user", content: `${"word ".repeat(9)}${key}` });
      await turn.end();
      expect(await all(store, session.id, format)).toContain(key.slice(0, 12));
      expect(await all(store, session.id, format, true)).not.toContain(key.slice(0, 12));
      // Its title is then one of its own.
      await using fork = await store.fork(session.id, await titleForFork(store, session.id));
      expect(await all(store, fork.id, format)).toContain(key.slice(0, 12));
      expect(await all(store, fork.id, format, true)).not.toContain(key.slice(0, 12));
    },
  );

  test("/export: ~/ is the home, and who has none is told so", async () => {
    const { store, id, path } = await session();
    const read = (session: string, format: Format): AsyncIterable<string> => exportSession(store, session, { format });
    expect(await makeExporter(read, () => path)(id, "~/talk.md")).toBe(join(path, "talk.md"));
    await expect(makeExporter(read, () => path)(id, "~/talk.md")).rejects.toThrow(/already exists/);
    await expect(makeExporter(read, () => null)(id, "~/other.md")).rejects.toThrow(
      /no home folder: give an absolute path/,
    );
  });

  test("the page names the session, its folder, the queue, and what tools did", async () => {
    const { store, id } = await session();
    const page = await all(store, id, "html");
    for (const words of [id, "Keys &amp; &lt;tags&gt;", "shell: env", "Queued prompts", "and then?", "done"])
      expect(page).toContain(words);
    const text = await all(store, id, "markdown");
    for (const words of [id, "shell: env", "## Queued prompts", "> and then?"]) expect(text).toContain(words);
  });
});

test("redacting keeps what is no text, also JSON in a text, and changes nothing where there is nothing", () => {
  const image = Buffer.alloc(600, 7).toString("base64");
  const value = { type: "image", data: image, signature: "sk-ant-x", n: 1, url: new URL("https://a.example/") };
  expect(redactDeep(value)).toBe(value);
});

test.each([
  [
    '{"password":"hunter2hunter2","n":12345678901234567890}',
    '{"password":"[redacted:secret]","n":12345678901234567890}',
  ],
  ['[ -0, 1e400, 1.10, {"password" : "hunter2hunter2"} ]', '[ -0, 1e400, 1.10, {"password" : "[redacted:secret]"} ]'],
  [
    '{"password":"hunter2hunter2","password":"hunter3hunter3"}',
    '{"password":"[redacted:secret]","password":"[redacted:secret]"}',
  ],
  [
    '{"a":"\\u0061\\/","__proto__":{"token":"a1b2c3d4e5"}}',
    '{"a":"\\u0061\\/","__proto__":{"token":"[redacted:secret]"}}',
  ],
  [
    '{"signature":"password=hunter2hunter2","k":"password=hunter2hunter2"}',
    '{"signature":"password=hunter2hunter2","k":"password=[redacted:secret]"}',
  ],
  ['{"a":{"password":["hunter2hunter2"]},"password":1}', '{"a":{"password":["hunter2hunter2"]},"password":1}'],
  ['{"password":"hunter2hunter2', '{"password":"[redacted:secret]'],
  ['"password=hunter2hunter2"', '"password=[redacted:secret]"'],
  [
    '{"input":"{\\"password\\":\\"hunter2hunter2\\",\\"n\\":1e400}"}',
    '{"input":"{\\"password\\":\\"[redacted:secret]\\",\\"n\\":1e400}"}',
  ],
])("redacting JSON in a text changes nothing but the secret: %s", (given, wanted) => {
  for (const name of ["input", "args", "arguments"]) expect(redactDeep({ [name]: given })).toEqual({ [name]: wanted });
});

describe("the file", () => {
  test("C24: under umask 000 it is 0600, and nothing else is left", async () => {
    const path = somewhere();
    const before = process.umask(0);
    try {
      await writeOutput(join(path, "a.md"), ["hello ", "there"]);
    } finally {
      process.umask(before);
    }
    expect(readFileSync(join(path, "a.md"), "utf8")).toBe("hello there");
    expect((statSync(join(path, "a.md")).mode & 0o777).toString(8)).toBe("600");
    expect(readdirSync(path)).toEqual(["a.md"]);
  });

  test("one that is there is replaced only with force; a link's target is never touched", async () => {
    const path = somewhere();
    writeFileSync(join(path, "a"), "mine");
    chmodSync(join(path, "a"), 0o644);
    symlinkSync(join(path, "a"), join(path, "link"));
    for (const name of ["a", "link"]) {
      await expect(writeOutput(join(path, name), ["new"])).rejects.toMatchObject({
        code: "OUTPUT_EXISTS",
        exitCode: 2,
      });
    }
    await writeOutput(join(path, "link"), ["new"], { force: true });
    expect(readFileSync(join(path, "a"), "utf8")).toBe("mine");
    expect(readFileSync(join(path, "link"), "utf8")).toBe("new");
    await writeOutput(join(path, "a"), ["newer"], { force: true });
    expect((statSync(join(path, "a")).mode & 0o777).toString(8)).toBe("600");
    expect(readdirSync(path).sort()).toEqual(["a", "link"]);
  });

  test("what is no file is never replaced: a folder, a pipe, a link to a device", async () => {
    const path = somewhere();
    const [folder, pipe, device] = ["folder", "pipe", "device"].map((name) => join(path, name));
    mkdirSync(folder!);
    execFileSync("mkfifo", [pipe!]);
    symlinkSync("/dev/null", device!);
    for (const target of [folder!, pipe!, device!])
      await expect(writeOutput(target, ["x"], { force: true })).rejects.toMatchObject({
        code: "OUTPUT_EXISTS",
        message: expect.stringContaining("is not a regular file"),
      });
    expect([lstatSync(folder!).isDirectory(), lstatSync(pipe!).isFIFO(), lstatSync(device!).isSymbolicLink()]).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("one that appears while it is written stays, and so does nothing of ours", async () => {
    const path = somewhere();
    const target = join(path, "a");
    async function* pieces() {
      yield "1";
      writeFileSync(target, "somebody else's");
      yield "2";
    }
    await expect(writeOutput(target, pieces())).rejects.toMatchObject({ code: "OUTPUT_EXISTS" });
    expect(readFileSync(target, "utf8")).toBe("somebody else's");
    expect(readdirSync(path)).toEqual(["a"]);
  });

  test("an export that fails on the way, or a folder that is not there, leaves nothing", async () => {
    const path = somewhere();
    async function* pieces() {
      yield "1";
      throw new Error("the store failed");
    }
    await expect(writeOutput(join(path, "a"), pieces())).rejects.toThrow("the store failed");
    await expect(writeOutput(join(path, "no", "a"), ["x"])).rejects.toMatchObject({
      code: "OUTPUT_FAILED",
      exitCode: 1,
    });
    expect(readdirSync(path)).toEqual([]);
    expect(existsSync(join(path, "a"))).toBe(false);
  });

  test("its name tells the format, unless that is given", () => {
    expect(formatFor(undefined, "a/b.HTML")).toBe("html");
    expect(formatFor(undefined, "x.md")).toBe("markdown");
    expect(formatFor(undefined, "x.jsonl")).toBe("jsonl");
    expect(formatFor(undefined, "x.json")).toBe("messages");
    expect(formatFor("gemini", "x.md")).toBe("gemini");
    expect(formatFor(undefined, undefined)).toBe("markdown");
    expect(() => formatFor(undefined, "x.doc")).toThrow(expect.objectContaining({ exitCode: 2, code: "USAGE" }));
    expect(() => formatFor("pdf", undefined)).toThrow(expect.objectContaining({ exitCode: 2 }));
  });
});
