import { signPart, validateGemini } from "@holdfast/testkit/internal/providers";
import { type Body, event, pieces, type Speech } from "./server.ts";

/**
 * `POST /v1beta/models/…:streamGenerateContent?alt=sse`. The first call of an answer is signed, as with models that
 * think.
 */
export const gemini: Speech = {
  base: "/v1beta",
  events: ({ reasoning = "", text = "", calls = [] }, _body, id) => {
    const usageMetadata = {
      promptTokenCount: 12,
      cachedContentTokenCount: 4,
      candidatesTokenCount: 16,
      thoughtsTokenCount: 5,
      totalTokenCount: 33,
    };
    const chunk = (parts: Body[], finish?: string): Body => ({
      candidates: [{ content: { role: "model", parts }, index: 0, ...(finish ? { finishReason: finish } : {}) }],
      responseId: `g${id}`,
      usageMetadata,
    });
    return [
      ...pieces(reasoning).map((piece) => chunk([{ text: piece, thought: true }])),
      ...pieces(text).map((piece) => chunk([{ text: piece }])),
      ...calls.map(({ id: call, name, input }, index) => {
        const part = { functionCall: { id: call, name, args: input } };
        return chunk([index === 0 ? { ...part, thoughtSignature: signPart(part) } : part]);
      }),
      chunk([], "STOP"),
    ].map((data) => event(data));
  },
  failure: () => event({ error: { code: 503, message: "The model is overloaded", status: "UNAVAILABLE" } }),
  refusal: (message) => ({ error: { code: 500, message, status: "INTERNAL" } }),
  judge: (body) => validateGemini(body),
};
