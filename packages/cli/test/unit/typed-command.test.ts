import { resolve } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { rememberStore, typedCommand } from "../../src/typed-command.ts";

afterEach(() => {
  vi.unstubAllEnvs();
  rememberStore({});
});

const SECRET = "postgres://me:hunter2@db/app";

test.each([
  ["the default", undefined, "", "holdfast ls"],
  ["a folder", "/data/store", "", "holdfast ls --store /data/store"],
  ["a relative path", "my store", "", `holdfast ls --store '${resolve("my store")}'`],
  ["a quote in it", "/it's", "", "holdfast ls --store '/it'\\''s'"],
  ["a file", "sqlite:/data/a.db", "", "holdfast ls --store sqlite:/data/a.db"],
  ["the variable", undefined, "/data/store", "holdfast ls --store /data/store"],
  ["both: the flag counts", "/one", "/two", "holdfast ls --store /one"],
  ["a password that was typed", SECRET, "", "holdfast ls --store 'postgres://me:…@db/app'"],
  ["a password in the variable, which stays", undefined, SECRET, "holdfast ls"],
])("%s", (_, flag, variable, typed) => {
  vi.stubEnv("HOLDFAST_STORE", variable);
  rememberStore({ store: flag });
  expect(typedCommand("ls")).toBe(typed);
});
