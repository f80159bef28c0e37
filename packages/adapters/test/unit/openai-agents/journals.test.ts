import { Agent, tool } from "@openai/agents";
import { expect, test } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/openai-agents/index.ts";
import { bringTo, callRows } from "../../call-rows.ts";
import { call, resultsIn, ScriptedModel, stage, text } from "../../openai-agents/scripted.ts";

test.each(callRows())("resume decides about an open call as the account says: $state, $decision", async (row) => {
  await using here = await stage(row.state === "unrecorded" ? { recordsToolStarts: false } : {});
  const turn = await here.session.startTurn({ type: "message", role: "user", content: "go" });
  const isAsked = row.state === "awaiting";
  const made = isAsked ? { ...call("a", "look"), needsApproval: true } : call("a", "look");
  await turn.append(made as never);
  await bringTo(turn, row);
  const session = await here.next();
  expect(session.calls).toMatchObject([{ id: "a", state: row.state }]);
  const ran: string[] = [];
  const execute = async (): Promise<string> => {
    ran.push("a");
    return "seen";
  };
  const look = tool({ name: "look", description: "", parameters: z.object({}), needsApproval: isAsked, execute });
  const model = new ScriptedModel([[text("Done.")]]);
  const held = durable(session, { replay: { look: "safe" } });
  const outcome = await held.finish(await held.resume(new Agent({ name: "one", model, tools: [look] })));
  expect(ran).toEqual(row.decision === "run" || row.decision === "run-again" ? ["a"] : []);
  if (row.decision === "wait") {
    expect([outcome, model.requests, session.state]).toEqual([{ kind: "waiting" }, [], "waiting"]);
    return;
  }
  expect(outcome).toEqual({ kind: "completed" });
  expect(resultsIn(model.inputs[0])["a"]).toMatch(
    row.decision === "tell-model" ? /Check before repeating it|check before repeating it/ : /seen/,
  );
});
