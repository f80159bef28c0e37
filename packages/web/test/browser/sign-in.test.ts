import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Stage } from "./stage.ts";

const stage = new Stage();
beforeAll(() => stage.serve());
afterEach(() => stage.closePages());
afterAll(() => stage[Symbol.asyncDispose]());

test("the token leaves the address, becomes a cookie that scripts cannot read, and lasts over a reload", async () => {
  const page = await stage.page("/");
  expect(page.url()).not.toContain(stage.token);
  expect(await page.evaluate(() => document.cookie)).toBe("");
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
  expect(cookie!.value).not.toContain(stage.token);
  expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toContain(
    stage.token,
  );
  await page.goBack().catch(() => null);
  expect(page.url()).not.toContain(stage.token);
  await page.goto(`${stage.url}/`);
  await page.reload();
  await page.locator(".list-pane").waitFor();
  expect(page.problems).toEqual([]);
});

test("without a token the page says what to do", async () => {
  const page = await stage.page("/");
  await page.context().clearCookies();
  await page.goto(`${stage.url}/`);
  await page.reload();
  await page.getByRole("heading", { name: "This page needs its token" }).waitFor();
});

test("nothing in the page is inline, and the policy forbids it", async () => {
  const response = await fetch(`${stage.url}/`);
  expect(response.headers.get("content-security-policy")).toContain("script-src 'self'");
  const html = await response.text();
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/i);
  const page = await stage.page("/");
  const ran = await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.inline = 1";
    document.body.append(script);
    return "inline" in window;
  });
  expect(ran).toBe(false);
});

test("a read-only link shows one session, without anything that changes it", async () => {
  const id = await stage.newSession("Shared");
  const owner = await stage.page(`/${id}`);
  await owner.locator(".composer textarea").fill("tell me a story of 20 words");
  await owner.keyboard.press("Enter");
  await owner.locator(".item-answer:not(.live)").waitFor();
  await owner.getByRole("button", { name: "More actions" }).click();
  await owner.getByRole("menuitem", { name: "Share a read-only link" }).click();
  const link = owner.getByRole("textbox", { name: "Link" });
  await expect.poll(() => link.inputValue()).toContain("token");
  const address = await link.inputValue();
  const context = await owner.context().browser()!.newContext();
  const reader = await context.newPage();
  await reader.goto(address);
  await reader.getByText("You can read this session, but not change it.").waitFor();
  await reader.locator(".item-answer").waitFor();
  expect(reader.url()).not.toContain("token");
  await expect.poll(() => reader.locator(".list-pane, .composer, .session-tools").count()).toBe(0);
  await expect.poll(() => reader.getByRole("tab").allInnerTexts()).toEqual(["Conversation", "Files", "Usage"]);
  await reader.goto(`${stage.url}/#/${await stage.newSession("Private")}`);
  await reader.locator(".session-pane h1", { hasText: "Shared" }).waitFor();
});

test("--open signs a browser in, and the token is on no command line", async () => {
  await using opened = new Stage();
  const programs = join(opened.folder, "programs");
  const told = join(opened.folder, "told");
  mkdirSync(programs);
  for (const name of ["xdg-open", "open"])
    writeFileSync(
      join(programs, name),
      `#!/bin/sh\nprintf '%s\\n' "$@" > '${told}.new'; mv '${told}.new' '${told}'\n`,
      {
        mode: 0o755,
      },
    );
  await opened.serve(["--open"], programs);
  await expect.poll(() => statSync(told, { throwIfNoEntry: false })?.size ?? 0).toBeGreaterThan(0);
  const address = readFileSync(told, "utf8").trim();
  expect(address).not.toContain(opened.token);
  const file = fileURLToPath(address);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).toContain(`${opened.url}/#token=${opened.token}`);
  const page = await opened.pageAt(address);
  expect(page.url()).toBe(`${opened.url}/`);
  expect(page.problems).toEqual([]);
});
