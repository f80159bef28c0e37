import { seedOf } from "../../../../../holdfast/test/seed.ts";
import { format } from "../../../../src/agents/gemini/format.ts";
import { gemini } from "../../../../src/agents/gemini/index.ts";
import { fieldsOf, listIn } from "../../../../src/contract/shapes.ts";
import { describeFix, describeLineAgent, type LineAgentSuite } from "../agent-suite.ts";
import { LINE_DAMAGE, lineChanged, lineGone, lineTwice } from "../line-damage.ts";

const callsIn = (line: string): readonly unknown[] => listIn(fieldsOf(JSON.parse(line))["toolCalls"]);
const isMessage = (line: string): boolean => typeof fieldsOf(JSON.parse(line))["id"] === "string";

const suite: LineAgentSuite = {
  agent: gemini,
  lines: format,
  format: "gemini",
  seed: seedOf(import.meta.url, "unit"),
  damages: [
    ...LINE_DAMAGE,
    lineGone("a record with its calls is gone", ["result-without-call"], (line) => callsIn(line).length > 0),
    lineTwice(isMessage),
    lineChanged("a call with null input", ["bad-tool-input"], (line) => {
      if (callsIn(line).length === 0) return null;
      const message = fieldsOf(JSON.parse(line));
      const toolCalls = callsIn(line).map((call, n) => (n === 0 ? { ...fieldsOf(call), args: null } : call));
      return JSON.stringify({ ...message, toolCalls });
    }),
  ],
};
describeLineAgent(suite);
describeFix(suite);
