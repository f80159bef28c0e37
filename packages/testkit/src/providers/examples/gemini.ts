import { type GeminiOptions, signPart } from "../gemini.ts";
import type { Json } from "../violation.ts";
import type { Example } from "./example.ts";

const user = (...parts: readonly Json[]) => ({ role: "user", parts });
const model = (...parts: readonly Json[]) => ({ role: "model", parts });
const text = (words: string) => ({ text: words });
const signed = (part: Json) => ({ ...part, thoughtSignature: signPart(part) });
const call = (name: string, id?: string) => ({
  functionCall: id === undefined ? { name, args: { path: "a.txt" } } : { id, name, args: { path: "a.txt" } },
});
const response = (name: string, id?: string) => ({
  functionResponse:
    id === undefined ? { name, response: { output: "done" } } : { id, name, response: { output: "done" } },
});

/**
 * Parallel calls without ids, an image, steering as a separate turn, a thought, calls with ids, an answer, a prompt.
 */
export const geminiConversation: {
  readonly contents: readonly { readonly role: string; readonly parts: readonly Json[] }[];
} = {
  contents: [
    user(text("Read both files."), { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } }),
    model(text("I read them."), signed(call("read")), call("run")),
    user(response("read"), response("run")),
    user(text("Look at the tides too.")),
    model({ text: "Tides.", thought: true }, signed(call("search", "c1")), call("search", "c2")),
    user(response("search", "c2"), response("search", "c1")),
    model(signed(call("read", "c3"))),
    user(response("read", "c3")),
    model(text("Done."), signed({ text: "" })),
    user(text("Once more.")),
    model(signed(call("read", "c4"))),
    user(response("read", "c4")),
  ],
};

const asked = (...contents: readonly Json[]) => ({ contents: [user(text("Hello.")), ...contents] });

export const geminiExamples: readonly Example<GeminiOptions>[] = [
  {
    rule: "gemini-1",
    accepts: {
      name: "two calls, two responses, then a prompt of its own",
      request: asked(model(signed(call("a")), call("b")), user(response("a"), response("b")), user(text("Thanks."))),
    },
    refuses: [
      { name: "one response is missing", request: asked(model(signed(call("a")), call("b")), user(response("a"))) },
      {
        name: "one response too many",
        request: asked(model(signed(call("a"))), user(response("a"), response("a"))),
      },
      { name: "another name", request: asked(model(signed(call("a"))), user(response("b"))) },
      { name: "a prompt instead of the response", request: asked(model(signed(call("a"))), user(text("Stop."))) },
      { name: "a response without call", request: asked(model(text("Hi.")), user(response("a"))) },
      {
        name: "the responses spread over two turns",
        request: asked(model(signed(call("a")), call("b")), user(response("a")), user(response("b"))),
      },
      {
        name: "text behind the response in one turn",
        request: asked(model(signed(call("a"))), user(response("a"), text("Go on."))),
      },
    ],
  },
  {
    rule: "gemini-2",
    accepts: {
      name: "a call turn behind a response turn",
      request: asked(model(signed(call("a"))), user(response("a")), model(signed(call("b"))), user(response("b"))),
    },
    refuses: [
      { name: "a call turn first", request: { contents: [model(signed(call("a"))), user(response("a"))] } },
      {
        name: "a call turn behind a model turn",
        request: asked(model(text("I look.")), model(signed(call("a"))), user(response("a"))),
      },
    ],
  },
  {
    rule: "gemini-3",
    accepts: {
      name: "an earlier turn without signatures, which nobody checks",
      request: asked(model(call("a")), user(response("a")), model(text("Done.")), user(text("Thanks."))),
    },
    refuses: [
      { name: "no signature in the current turn", request: asked(model(call("a")), user(response("a"))) },
      {
        name: "the signature on the second call",
        request: asked(model(call("a"), signed(call("b"))), user(response("a"), response("b"))),
      },
      {
        name: "a second step without its signature, or a parallel group torn into two steps",
        request: asked(model(signed(call("a"))), user(response("a")), model(call("b")), user(response("b"))),
      },
      {
        name: "the signature of another part",
        request: asked(model({ ...call("a"), thoughtSignature: signPart(call("b")) }), user(response("a"))),
      },
      {
        name: "a changed signature",
        request: asked(model({ ...text("Hi."), thoughtSignature: "c2ln" }), user(text("And?"))),
      },
    ],
  },
  {
    rule: "gemini-4",
    accepts: { name: "a response turn at the end", request: asked(model(signed(call("a"))), user(response("a"))) },
    refuses: [
      { name: "an answer at the end", request: asked(model(text("Hi."))) },
      { name: "a call at the end", request: asked(model(signed(call("a")))) },
    ],
  },
  {
    rule: "gemini-5",
    accepts: {
      name: "responses by id in another order",
      request: asked(model(signed(call("a", "1")), call("b", "2")), user(response("b", "2"), response("a", "1"))),
    },
    refuses: [
      {
        name: "without ids in another order",
        request: asked(model(signed(call("a")), call("b")), user(response("b"), response("a"))),
      },
      { name: "another id", request: asked(model(signed(call("a", "1"))), user(response("a", "2"))) },
      { name: "the id left out", request: asked(model(signed(call("a", "1"))), user(response("a"))) },
      {
        name: "one id for both responses",
        request: asked(model(signed(call("a", "1")), call("a", "2")), user(response("a", "1"), response("a", "1"))),
      },
    ],
  },
  {
    rule: "gemini-shape",
    accepts: {
      name: "a signature in a part of empty text",
      request: asked(model(text("Hi."), signed({ text: "" })), user(text("And?"))),
    },
    refuses: [
      { name: "no contents", request: { contents: [] } },
      { name: "a model turn first", request: { contents: [model(text("Hi.")), user(text("Hello."))] } },
      { name: "no parts", request: asked(model(), user(text("And?"))) },
      { name: "empty text", request: { contents: [user(text(""))] } },
      { name: "a part without data", request: { contents: [user({})] } },
      { name: "a field of ours", request: { contents: [{ ...user(text("Hello.")), id: "m1" }] } },
      {
        name: "the role of another API",
        request: asked({ role: "assistant", parts: [text("Hi.")] }, user(text("And?"))),
      },
      {
        name: "a response that is text",
        request: asked(model(signed(call("a"))), user({ functionResponse: { name: "a", response: "done" } })),
      },
    ],
  },
  {
    rule: "gemini-unicode",
    accepts: { name: "a whole character of two units", request: { contents: [user(text("😀"))] } },
    refuses: [
      { name: "half a character in a prompt", request: { contents: [user(text("\ud83d"))] } },
      {
        name: "the other half in the name of a member",
        request: asked(model(signed({ functionCall: { name: "a", args: { "\ude00": 1 } } })), user(response("a"))),
      },
      { name: "a NUL", request: { contents: [user(text("a\0b"))] } },
    ],
  },
];
