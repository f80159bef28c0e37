import { expect, test } from "vitest";
import { gemini } from "../../../src/dialects/gemini.ts";
import { entry } from "./dialect-conversations.ts";

test("R9: a function response that has no response, or one that is no object, is sent with an object", () => {
  const shown = (functionResponse: object): unknown => {
    const contents = [
      { role: "user", parts: [{ text: "go" }] },
      { role: "model", parts: [{ functionCall: { name: "read", args: {} } }] },
      { role: "user", parts: [{ functionResponse }] },
    ];
    const view = gemini.arrange(contents.map((content, at) => entry(content, at)) as never, {
      changedAt: null,
      next: "model",
    });
    return JSON.parse(JSON.stringify(view.at(-1)!.parts));
  };
  const sent = (response: object) => [{ functionResponse: { name: "read", response } }];
  expect(shown({ name: "read" })).toEqual(sent({ output: null }));
  expect(shown({ name: "read", response: "text" })).toEqual(sent({ output: "text" }));
  expect(shown({ name: "read", response: { output: 1 } })).toEqual(sent({ output: 1 }));
});
