// usage: craft.ts 'name: tokens' ...   tokens: h5[(6)][>1@120] r7[(6)] u5:3 x f blank t(torn, no newline) c9 e6
import { readTwice } from "./packages/holdfast/test/corpus/two-readings.ts";
import { lineOf, SESSION } from "./packages/holdfast/test/corpus/random-folders.ts";
export function craft(specs: string[]) {
  const folder = new Map<string, Buffer>();
  for (const spec of specs) {
    const [name, ...rest] = spec.split(/:\s*/);
    const file = /^\d+$/.test(name!) ? `${name!.padStart(6, "0")}.jsonl` : name!.replace(/^(\d+)/, (d) => d.padStart(6, "0") + ".jsonl");
    const number = Number.parseInt(name!, 10);
    let text = "";
    for (const token of rest.join(":").split(/\s+/).filter(Boolean)) {
      const m = /^([a-z]+)(\d+)?(?::(\d+))?(?:\((\d+)\))?(?:e(\d+))?(?:>(\d+)@(\d+))?$/.exec(token);
      if (!m) throw new Error(token);
      const [, t, n, unit, synced, epoch, seg, bytes] = m;
      const seq = Number(n);
      const common = { unit: unit ? Number(unit) : undefined, synced: synced ? Number(synced) : t === "h" ? seq : undefined, at: "2026-11-15T08:00:00.000Z" };
      if (t === "h") text += lineOf(seq, { ...common, kind: "segment", format: "1.1", session: SESSION, segment: number, epoch: Number(epoch ?? 1), after: seg ? { segment: Number(seg), bytes: Number(bytes) } : undefined, by: "t" }) + "\n";
      else if (t === "r" || t === "u") text += lineOf(seq, { ...common, kind: "message", text: file }) + "\n";
      else if (t === "c") text += lineOf(seq, { ...common, kind: "closed" }) + "\n";
      else if (t === "e") text += lineOf(seq, { ...common, kind: "epoch", reason: "clear" }) + "\n";
      else if (t === "x") text += "xxxx\n";
      else if (t === "f") text += "17\n";
      else if (t === "blank") text += "\n";
      else if (t === "t") text += '{"seq":';
      else throw new Error(token);
    }
    folder.set(file, Buffer.from(text));
  }
  return folder;
}
if (process.argv[1] === import.meta.filename) {
  const c: any = await readTwice(craft(process.argv.slice(2)));
  const show = (r: any) => r && (r.refused ?? `${r.records.map((k: string) => k.split(" ").slice(0, 2).join("")).join(" ")} | epoch ${r.epoch[0]}.. (${r.epoch.length}) | damaged ${r.damaged.map((d: any) => `${d.segment.slice(4)}@${d.offset}+${d.bytes}=${d.seq ?? "?"}`).join(" ")} | missing ${r.missing.map((m: any) => `${m.from}-${m.to}`).join(" ")} | ${r.isTorn ? "TORN" : "-"} ${r.isClosed ? "closed" : "-"} next ${r.next}`);
  {
  console.log("second", show(c.before.second)); console.log("store ", show(c.before.store)); 
  console.log("2nd >>", show(c.after?.second)); console.log("store>", show(c.after?.store)); }
}
