import { spawn } from "node:child_process";
import { launchChromium } from "/work/h/page/packages/web/test/browser/chromium.ts";
const [store, out, ...which] = process.argv.slice(2);
const child = spawn(process.execPath, ["--conditions=holdfast-source", "/work/h/page/packages/web/test/browser/served.ts", store!, "", "0", "20"], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, XDG_STATE_HOME: "/tmp/page-xdg", XDG_CONFIG_HOME: "/tmp/page-xdg" } });
const line = await new Promise<string>((r) => child.stdout.once("data", (d) => r(String(d))));
const { url, token } = JSON.parse(line);
console.log(url);
const browser = await launchChromium();
try {
  const list = await (await fetch(`${url}/sessions?limit=100`, { headers: { authorization: `Bearer ${token}` } })).json() as any;
  const hero = list.sessions.find((s: any) => s.title.startsWith("Make the CSV")).id;
  const fork = list.sessions.find((s: any) => s.title.startsWith("Importer: try"))?.id;
  const widths = [390, 1024, 1680];
  const views: [string, string][] = [["list", ""], ["session", `/${hero}`], ["files", `/${hero}/files`], ["usage", `/${hero}/usage`], ["tree", `/${hero}/tree`], ["compare", `/${fork}/compare`]];
  for (const theme of ["light", "dark"] as const) for (const width of widths) {
    const context = await browser.newContext({ viewport: { width, height: width === 390 ? 844 : width === 1024 ? 768 : 1000 }, colorScheme: theme, timezoneId: "UTC" });
    const page = await context.newPage();
    page.on("console", (m) => { if (m.type() === "error") console.log("console:", m.text()); });
    page.on("pageerror", (e) => console.log("pageerror:", e.message));
    await page.goto(`${url}/#token=${token}`);
    for (const [name, path] of views) {
      const key = `${name}-${width}-${theme}`;
      if (which.length && !which.some((w) => key.includes(w))) continue;
      await page.goto(`${url}/#${path || "/"}`);
      await page.waitForTimeout(900);
      await page.screenshot({ path: `${out}/${key}.png` });
      console.log(key, await page.evaluate(() => document.querySelectorAll("*").length));
    }
    await context.close();
  }
} finally { await browser.close(); child.kill("SIGKILL"); }
