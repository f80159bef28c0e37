import * as holdfast from "holdfast";
import { expect, test } from "vitest";
import type * as api from "./api.d.ts";

interface Message {
  readonly role: string;
}

/** Compiles only if the second type is assignable to the first. */
function fits<Promised, _Exported extends Promised>(): void {}

// The compiler is what fails here: `npm run build` checks this file.
test("the exported types are assignable to the surface that was promised (api.d.ts)", () => {
  fits<typeof api.openStore, typeof holdfast.openStore>();
  fits<typeof api.guard, typeof holdfast.guard>();
  fits<api.Store, holdfast.Store>();
  fits<api.Session<Message>, holdfast.Session<Message>>();
  fits<api.Reading<Message>, holdfast.Reading<Message>>();
  fits<api.Turn<Message>, holdfast.Turn<Message>>();
  fits<api.Draft<Message>, holdfast.Draft<Message>>();
  fits<api.Entry<Message>, holdfast.Entry<Message>>();
  fits<api.Interruption<Message>, holdfast.Interruption<Message>>();
  fits<api.OpenCall, holdfast.OpenCall>();
  fits<api.Queued<Message>, holdfast.Queued<Message>>();
  fits<api.Summary, holdfast.Summary>();
  fits<api.Attributes, holdfast.Attributes>();
  fits<api.Usage, holdfast.Usage>();
  fits<api.JournalRecord, holdfast.JournalRecord>();
  fits<api.HoldfastError, holdfast.HoldfastError>();
  // What callers write by the promised surface is taken.
  fits<holdfast.CreateOptions<Message>, api.CreateOptions<Message>>();
  fits<holdfast.OpenOptions<Message>, api.OpenOptions<Message>>();
  fits<holdfast.ListQuery, api.ListQuery>();
  fits<holdfast.ResumeOptions, api.ResumeOptions>();
  fits<holdfast.AppendOptions, api.AppendOptions>();
  fits<holdfast.ToolOptions, api.ToolOptions>();
  fits<holdfast.Dialect<Message>, api.Dialect<Message>>();
  fits<api.Dialect<Message>, holdfast.Dialect<Message>>();
});

test("every name of the promised surface that is a value is exported", () => {
  for (const value of [holdfast.openStore, holdfast.guard, holdfast.HoldfastError])
    expect(typeof value).toBe("function");
});
