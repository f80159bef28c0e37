// Runs the worker in workerd, with what its Durable Objects store on disk: `node cloudflare-serve.mjs <folder> <variant> <again>`.
import { Miniflare } from "miniflare";

const [folder, variant, again] = process.argv.slice(2);
const miniflare = new Miniflare({
  host: "127.0.0.1",
  modules: [{ type: "ESModule", path: `${folder}/worker.mjs` }],
  modulesRoot: folder,
  compatibilityDate: "2026-03-24",
  compatibilityFlags: ["nodejs_compat"],
  bindings: { PAYMENT_URL: process.env.PAYMENT_URL, VARIANT: variant },
  durableObjects: { THINK: { className: "Think", useSQLite: true }, TASK: { className: "Task", useSQLite: true } },
  durableObjectsPersist: `${folder}/objects`,
  cf: false,
});
await miniflare.ready;
// A request wakes the object, as its alarm does.
console.log(
  again,
  await (await miniflare.dispatchFetch(`http://worker/${again === "again" ? "wake" : "begin"}`)).text(),
);
