import { appendFileSync, existsSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { setTimeout as passed } from "node:timers/promises";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

/** A real MCP server on standard input and output, as users run them: `mcp-server.ts [manner]`. */
type Manner = "normal" | "hostile" | "many" | "garbage" | "silent" | "flood" | "deaf" | "quits" | "noise" | "dies-once";

const manner = (process.argv[2] ?? "normal") as Manner;

/** One pixel. */
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const any = { type: "object" as const, additionalProperties: true };
const named = (name: string, description = `The tool ${name}.`, inputSchema: object = any): object => ({
  ...{ name, description, inputSchema },
});

/** What a server can list that must not reach a screen, a provider or another tool's place. */
export const HOSTILE: readonly unknown[] = [
  named("plain"),
  named("plain", "Another one with the same name."),
  named("read\u001b[2J\u202etxt", "Clears\u001b[2J the screen\u202e, and hides\u{e0041}\u200b words."),
  named("two words"),
  named("ünïcode"),
  named("x".repeat(300)),
  named("", "no name"),
  { name: 7 },
  "not a tool",
  { name: "no_schema" },
  named("odd_member", "x", { type: "object", properties: { "a b\u0007": { type: "string" } } }),
  named("huge_schema", "x", { type: "object", description: "d".repeat(100_000) }),
  named("unions", "x", { type: "object", properties: {}, anyOf: [{ required: ["a"] }] }),
];

const TOOLS = ["echo", "count", "wait", "die", "fail", "things", "long", "environment", "refuse", "freeze"].map(
  (name) => named(name),
);

const lists: Partial<Record<Manner, readonly unknown[]>> = {
  hostile: HOSTILE,
  many: Array.from({ length: 10_000 }, (_, n) => named(`tool_${n}`)),
};

interface Input {
  readonly text?: string;
  readonly file?: string;
  readonly chars?: number;
}

async function answer(name: string, { text = "", file = "", chars = 0 }: Input): Promise<object> {
  const said = (words: string): object => ({ content: [{ type: "text", text: words }] });
  switch (name) {
    case "echo":
      return said(text);
    case "count":
      appendFileSync(file, "once\n");
      return said(String(readFileSync(file, "utf8").split("\n").length - 1));
    case "wait":
      appendFileSync(file, `${process.pid}\n`);
      while (!existsSync(`${file}.go`)) await passed(20);
      return said("waited");
    case "die":
      process.kill(process.pid, "SIGKILL");
      return new Promise(() => {});
    case "fail":
      return { ...said(text), isError: true };
    case "freeze":
      for (;;) appendFileSync("/dev/null", "");
    case "refuse":
      throw new Error("the arguments are wrong");
    case "long":
      return said(`${"a".repeat(chars)}end`);
    case "environment":
      return said(JSON.stringify({ env: process.env, cwd: process.cwd(), args: process.argv.slice(2) }));
    default:
      return {
        content: [
          { type: "text", text: "a picture:" },
          { type: "image", mimeType: "image/webp", data: PNG },
          { type: "image", mimeType: "image/png", data: "bm90IGEgcGljdHVyZQ==" },
          { type: "audio", mimeType: "audio/wav", data: "AAAA" },
          { type: "resource", resource: { uri: "file:///a.txt", text: "the text of a" } },
          { type: "resource_link", uri: "file:///b.txt", name: "b" },
        ],
      };
  }
}

async function serve(): Promise<void> {
  const server = new Server({ name: "test\u001b[31m", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, (request) => {
    const all = lists[manner] ?? TOOLS;
    const from = Number(request.params?.cursor ?? 0);
    const to = from + 2500;
    return { tools: all.slice(from, to), ...(to < all.length ? { nextCursor: String(to) } : {}) } as never;
  });
  server.setRequestHandler(
    CallToolRequestSchema,
    async ({ params }) => (await answer(params.name, (params.arguments ?? {}) as Input)) as never,
  );
  await server.connect(new StdioServerTransport());
}

if (import.meta.main) {
  const wait = setInterval(() => {}, 1000);
  switch (manner) {
    case "silent":
      process.stdin.resume();
      break;
    case "garbage":
      for (;;) process.stdout.write("this is not the protocol\n".repeat(50));
    case "quits":
      writeSync(2, "no key\u001b[31m was given\n");
      process.exit(3);
      break;
    case "deaf":
      process.on("SIGTERM", () => {});
      await serve();
      break;
    case "flood": {
      clearInterval(wait);
      // Blocks if nobody reads it.
      const line = `${"e".repeat(1000)}\n`.repeat(64);
      for (let n = 0; n < 256; n++) process.stderr.write(line);
      await serve();
      break;
    }
    case "noise":
      clearInterval(wait);
      writeSync(1, 'Server listening on stdio\n\n{"jsonrpc":\n');
      await serve();
      break;
    case "dies-once": {
      clearInterval(wait);
      const mark = process.argv[3]!;
      if (existsSync(mark)) await serve();
      else {
        writeFileSync(mark, "");
        process.exit(9);
      }
      break;
    }
    default:
      clearInterval(wait);
      await serve();
  }
}
