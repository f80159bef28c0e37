import { seedOf } from "../../../../../holdfast/test/seed.ts";
import { format } from "../../../../src/agents/codex/format.ts";
import { codex } from "../../../../src/agents/codex/index.ts";
import { fieldsOf } from "../../../../src/contract/shapes.ts";
import { describeFix, describeLineAgent, type LineAgentSuite } from "../agent-suite.ts";
import { LINE_DAMAGE, lineChanged, lineGone, lineMoved, lineTwice } from "../line-damage.ts";

const payloadOf = (line: string): Readonly<Record<string, unknown>> => fieldsOf(fieldsOf(JSON.parse(line))["payload"]);
const typeOf = (line: string): unknown => payloadOf(line)["type"];
const isResult = (line: string): boolean => typeOf(line) === "function_call_output";
const isCall = (line: string): boolean => typeOf(line) === "function_call";

const suite: LineAgentSuite = {
  agent: codex,
  lines: format,
  format: "codex",
  seed: seedOf(import.meta.url, "unit"),
  damages: [
    ...LINE_DAMAGE,
    lineGone("a record is gone", ["lost-record"], () => true),
    lineGone("a result is gone", ["call-without-result", "lost-record"], isResult),
    lineGone("a call is gone", ["result-without-call", "lost-record"], isCall),
    lineTwice(() => true),
    lineMoved("a result before its call", ["result-before-call"], (lines) =>
      lines.flatMap((line, second) => {
        if (!isResult(line)) return [];
        const first = lines.findIndex(
          (each) => isCall(each) && payloadOf(each)["call_id"] === payloadOf(line)["call_id"],
        );
        return first < 0 ? [] : [[first, second] as const];
      }),
    ),
    lineChanged("a call with null input", ["bad-tool-input"], (line) =>
      isCall(line) ? line.replace(/("arguments":)"(?:[^"\\]|\\.)*"/, "$1null") : null,
    ),
    lineChanged("a call with half its input", ["bad-tool-input"], (line) =>
      isCall(line) ? line.replace(/("arguments":"(?:[^"\\]|\\.){6})(?:[^"\\]|\\.)*"/, '$1"') : null,
    ),
  ],
};
describeLineAgent(suite);
describeFix(suite);
