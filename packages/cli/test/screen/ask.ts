import { describeApproval, type Question } from "../../src/host/approval/approval-request.ts";
import type { PermissionAsk } from "../../src/host/host.ts";
import { digestOf, type Target } from "../../src/tools/files/call-target.ts";

/** A request for approval of a call in /tmp/x, where this stands at its path. */
export function asking(
  question: Partial<Question> & Pick<Question, "name" | "input">,
  target: Target = { kind: "none" },
): PermissionAsk {
  const { name, input } = question;
  const whole = { call: "c", summary: name, rule: name, ...question };
  const path = name === "shell" ? "/tmp/x" : "/tmp/x/file";
  return describeApproval(
    whole,
    { cwd: "/tmp/x", project: "/tmp/x" },
    {
      path,
      target,
      digest: digestOf({ name, input }, path, target),
      bytes: null,
    },
  );
}
