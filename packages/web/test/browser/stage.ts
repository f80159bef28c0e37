import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { launchChromium } from "./chromium.ts";

const bin = join(import.meta.dirname, "../../../cli/src/bin.ts");
const story = join(import.meta.dirname, "story.ts");
/** In the order of the story. Two of these processes kill themselves. */
const PARTS = ["first", "second", "others", "third"];

/** `holdfast serve` on a store of its own, and a browser. */
export class Stage implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-page-"));
  readonly store: string;
  readonly work = join(this.folder, "work");
  readonly #environment: NodeJS.ProcessEnv;
  #server: ChildProcess | null = null;
  #browser: Browser | null = null;
  token = "";
  url = "";

  constructor(delayMs = 0, store: "folder" | "sqlite" = "folder") {
    this.store = store === "folder" ? join(this.folder, "store") : `sqlite:${join(this.folder, "store.db")}`;
    mkdirSync(this.work, { recursive: true });
    this.#environment = {
      ...process.env,
      XDG_STATE_HOME: join(this.folder, "state"),
      XDG_CONFIG_HOME: join(this.folder, "config"),
      HOLDFAST_STORE: this.store,
      HOLDFAST_OFFLINE_DELAY_MS: String(delayMs),
    };
  }

  /** Records the sessions of a story, one process for each part. */
  tell(file = story, parts: readonly string[] = PARTS): void {
    for (const part of parts)
      spawnSync(process.execPath, ["--conditions=holdfast-source", file, this.folder, part], { stdio: "inherit" });
  }

  /** Starts the server; after `kill`, at the same port. `programs`: a folder that is searched for programs first. */
  async serve(args: readonly string[] = [], programs = ""): Promise<void> {
    const port = this.url === "" ? "0" : new URL(this.url).port;
    const run = ["--conditions=holdfast-source", bin, "serve"];
    this.token = execFileSync(process.execPath, [...run, "--show-token"], {
      env: this.#environment,
      encoding: "utf8",
    }).trim();
    const server = spawn(process.execPath, [...run, "--port", port, ...args], {
      env: { ...this.#environment, PATH: `${programs}${delimiter}${process.env["PATH"]}` },
      cwd: this.work,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#server = server;
    let said = "";
    for await (const piece of server.stdout!) {
      said += String(piece);
      const [url] = /http:\/\/[\d.]+:\d+/.exec(said) ?? [];
      if (!url) continue;
      this.url = url;
      return;
    }
    throw new Error(`the server ended: ${said}`);
  }

  async kill(): Promise<void> {
    const server = this.#server!;
    this.#server = null;
    server.kill("SIGKILL");
    if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
  }

  /** A page that is signed in, at a path such as `/<session>`. Errors of the page fail the test that reads them. */
  async page(path = "/", options: BrowserContextOptions = {}): Promise<Page & { readonly problems: string[] }> {
    return this.pageAt(`${this.url}/#token=${this.token}&to=${encodeURIComponent(path)}`, options);
  }

  async pageAt(address: string, options: BrowserContextOptions = {}): Promise<Page & { readonly problems: string[] }> {
    this.#browser ??= await launchChromium();
    const context = await this.#browser.newContext({
      viewport: { width: 1280, height: 800 },
      timezoneId: "UTC",
      ...options,
    });
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(message.text());
    });
    page.on("request", (request) => {
      const isOwn = request.url().startsWith(this.url) || request.url() === address;
      if (!isOwn && !/^(?:data|blob):/.test(request.url())) problems.push(`asks ${request.url()}`);
    });
    await page.goto(address);
    await page.locator(".list-pane").waitFor({ state: "attached" });
    return Object.assign(page, { problems });
  }

  /** After each test: a page that is left open works on, and takes time from the next test. */
  async closePages(): Promise<void> {
    for (const context of this.#browser?.contexts() ?? []) await context.close();
  }

  async ask<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, ...(body ? { "content-type": "application/json" } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (response.status === 204 ? undefined : await response.json()) as T;
  }

  /** The id of the session with this title. */
  async idOf(title: string): Promise<string> {
    const { sessions } = await this.ask<{ sessions: { id: string; title: string }[] }>("GET", "/sessions?limit=1000");
    return sessions.find((one) => one.title.startsWith(title))!.id;
  }

  async newSession(title: string): Promise<string> {
    return (await this.ask<{ id: string }>("POST", "/sessions", { cwd: this.work, title })).id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser?.close();
    if (this.#server) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
