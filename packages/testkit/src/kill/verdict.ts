import type { ConversationReceipt } from "../conversations/campaign.ts";
import type { PowerReceipt } from "../machine/power-cut.ts";
import type { Receipt } from "./campaign.ts";

/** The totals of a campaign as text, for a terminal or a log. Pure. */
export function verdictLines(title: string, receipt: Receipt): string[] {
  const { kills, sessions, attempted, acknowledged, recovered, lost, torn, tornByKernel, cutBytes, points, faults } =
    receipt;
  const atPoints = [...points.values()].reduce((sum, times) => sum + times, 0);
  const lines = [
    title,
    `  ${count(kills, "kill")} of the writers of ${count(sessions, "session")}, ${number(atPoints)} of them at ${count(points.size, "named step")}`,
    `  attempted ${number(attempted)} · acknowledged ${number(acknowledged)} · recovered ${number(recovered)}`,
    `  torn writes seen ${number(torn)}, ${number(tornByKernel)} of them by the kernel · bytes cut and set aside ${number(cutBytes)}`,
    `  lost ${number(lost)} · other faults ${number(faults.length - lost)}`,
  ];
  for (const { index, session, what, message } of faults) {
    lines.push(`  fault in session ${index} (${session}): ${what}: ${message}`);
  }
  return lines;
}

export function conversationLines(title: string, receipt: ConversationReceipt): string[] {
  const { kills, conversations, requests, effects, acknowledged, cutOff, faults } = receipt;
  const sum = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((all, one) => all + one, 0);
  return [
    `${title}, conversations`,
    `  ${count(kills, "kill")} of the agents of ${count(conversations, "conversation")}`,
    `  calls acknowledged ${number(sum(acknowledged))} · cut off by a death ${number(sum(cutOff))} · requests checked ${number(requests)} · tools run ${number(effects)}`,
    `  faults ${number(faults.length)}`,
    ...faults.map(
      ({ index, session, what, message }) => `  fault in conversation ${index} (${session}): ${what}: ${message}`,
    ),
  ];
}

export function powerCutLines(title: string, receipt: PowerReceipt): string[] {
  const { cuts, attempted, acknowledged, recovered, torn, cutBytes, lost, faults } = receipt;
  return [
    `${title}, power cuts`,
    `  ${count(cuts, "power cut")} of ext4 on a loop device (cannot reveal a device that does not flush)`,
    `  attempted ${number(attempted)} · acknowledged ${number(acknowledged)} · recovered ${number(recovered)}`,
    `  torn ends seen ${number(torn)} · bytes cut and set aside ${number(cutBytes)}`,
    `  lost ${number(lost)} · other faults ${number(faults.length - lost)}`,
    ...faults.map(({ what, message }) => `  fault: ${what}: ${message}`),
  ];
}

export function number(value: number): string {
  return value.toLocaleString("en-US");
}

export function count(value: number, thing: string): string {
  return `${number(value)} ${thing}${value === 1 ? "" : "s"}`;
}
