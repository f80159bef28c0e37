import { describe, expect, it } from "vitest";
import { geminiConversation, signPart, validateGemini } from "../../../src/providers/index.ts";
import { expectRefused, mutantsOf, rulesOf } from "./providers-mutants.ts";

const { contents } = geminiConversation;
const edits = {
  parts: "parts",
  message: { role: "user", parts: [{ text: "By the way." }] },
  text: { text: "By the way." },
  empty: { text: "" },
};

/** Accepted with and without signatures. */
const free = {
  "turns without calls are free": ["double 0 3 8 9", "drop 3 8"],
  "a prompt may stand wherever no response is due": ["message before 0 1 3 4 6 8 9 10 12"],
  "parts of a prompt are free": [
    "double 0.0 0.1 3.0 9.0",
    "drop 0.0 0.1",
    "swap 0.0",
    "text before 0.0 0.1 0.2 3.0 3.1 9.0 9.1",
  ],
  "text of the model is free, also behind its calls": [
    "double 1.0 4.0 8.0",
    "drop 1.0 4.0",
    "swap 1.0 4.0",
    "text before 1.0 1.1 1.2 1.3 4.0 4.1 4.2 4.3 6.0 6.1 8.0 8.1 10.0 10.1",
  ],
  "calls and responses with ids have no order": ["swap 4.1 5.0"],
};

describe("one edit of the contents", () => {
  it("is refused wherever calls, responses, signatures or ends are touched", () => {
    expectRefused(mutantsOf(contents, edits), (list) => validateGemini({ contents: list }), {
      ...free,
      "signatures of earlier turns and of text are not asked for": [
        "double 8.1",
        "drop 8.0 8.1",
        "swap 8.0",
        "text before 8.2",
      ],
    });
  });

  it("is refused in the same places where no signatures are asked for", () => {
    const plain = contents.map(({ role, parts }) => ({
      role,
      parts: parts.map((part) => {
        const { thoughtSignature: _, ...rest } = { thoughtSignature: "", ...part };
        return rest;
      }),
    }));
    const bare = plain.map((turn) => ({
      ...turn,
      parts: turn.parts.filter((part) => !("text" in part && part.text === "")),
    }));
    expect(validateGemini({ contents: bare }, { signatures: "optional" })).toEqual([]);
    expectRefused(mutantsOf(bare, edits), (list) => validateGemini(list, { signatures: "optional" }), free);
  });
});

describe("signatures", () => {
  const call = { functionCall: { name: "a", args: {} } };
  const answer = { role: "user", parts: [{ functionResponse: { name: "a", response: {} } }] };
  const prompt = { role: "user", parts: [{ text: "Hello." }] };
  const judged = (part: object, options = {}) =>
    rulesOf(validateGemini([prompt, { role: "model", parts: [part] }, answer], options));

  it("go back in the part they came in", () => {
    expect(judged({ ...call, thoughtSignature: signPart(call) })).toEqual([]);
    expect(judged({ functionCall: { name: "a", args: { x: 1 } }, thoughtSignature: signPart(call) })).toEqual([
      "gemini-3",
    ]);
    expect(judged({ ...call, thoughtSignature: "" })).toEqual(["gemini-3"]);
    expect(judged(call)).toEqual(["gemini-3"]);
  });

  it("the documented words skip the check", () => {
    expect(judged({ ...call, thoughtSignature: "skip_thought_signature_validator" })).toEqual([]);
  });

  it("of other makers are taken as they are, where that is asked for", () => {
    expect(judged({ ...call, thoughtSignature: "c2ln" }, { signatures: "opaque" })).toEqual([]);
    expect(judged(call, { signatures: "opaque" })).toEqual(["gemini-3"]);
    expect(judged(call, { signatures: "optional" })).toEqual([]);
  });
});
