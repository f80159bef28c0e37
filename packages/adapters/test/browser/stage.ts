import { cpSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { build } from "vite";
import { place } from "../../../holdfast/test/place.ts";
import { launchChromium } from "../../../web/test/browser/chromium.ts";
import { ChatServer } from "../chat-server.ts";
import { runnable } from "../end-to-end/guide.ts";
import { bundled } from "../kill/killed-program.ts";

const EXAMPLE = resolve(import.meta.dirname, "../../../../examples/chat");

/** The server of examples/chat. */
export function exampleServer(): string {
  return readFileSync(join(EXAMPLE, "server.ts"), "utf8");
}

/** The page of examples/chat, built, and a real browser. */
export class Example implements AsyncDisposable {
  readonly #place = place();
  readonly page = join(this.#place.path, "dist");
  readonly browser: Browser;

  constructor(browser: Browser) {
    this.browser = browser;
  }

  static async build(): Promise<Example> {
    const example = new Example(await launchChromium());
    await build({
      configFile: join(EXAMPLE, "vite.config.ts"),
      logLevel: "error",
      build: { outDir: example.page },
    });
    return example;
  }

  /** The server with this agent, in one file, which starts fast. */
  async bundle(agent: string): Promise<string> {
    using folder = place();
    runnable(folder.path, { "server.ts": exampleServer(), "agent.ts": agent });
    return readFileSync(await bundled(join(folder.path, "server.ts"), folder.path), "utf8");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser.close();
    this.#place[Symbol.dispose]();
  }
}

/** The example's server in a folder of its own, with tabs. */
export class Stage extends ChatServer {
  readonly #example: Example;
  readonly problems: string[] = [];

  constructor(example: Example, files: Readonly<Record<string, string>> = { "server.ts": exampleServer() }) {
    super(files);
    this.#example = example;
    cpSync(example.page, join(this.folder, "dist"), { recursive: true });
  }

  /** A tab, as if on a device of its own. */
  async tab(): Promise<Page> {
    const context = await this.#example.browser.newContext();
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    page.on("pageerror", (error) => this.problems.push(String(error)));
    await page.goto(`${this.url}/#${this.id}`);
    await page.getByLabel("Message").waitFor();
    return page;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    for (const context of this.#example.browser.contexts()) await context.close();
    await super[Symbol.asyncDispose]();
  }
}
