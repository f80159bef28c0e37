import { isHoldfastError, openStore, type Store } from "../../src/index.ts";

/** Prints what it lists, reads and finds, as counts; then the code and the words of what it may not do. */
async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    console.log(JSON.stringify(await work()));
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    console.log(`${error.code} ${error.message}`);
  }
}

async function read(store: Store): Promise<number[]> {
  const { sessions } = await store.list();
  const { entries } = await store.read(sessions[0]!.id);
  const hits = await Array.fromAsync(store.search("words"));
  return [sessions.length, entries.length, hits.length];
}

await attempt(async () => {
  const store = await openStore(process.argv[2]!);
  await attempt(() => read(store));
  await attempt(() => store.create({ dialect: "ai-sdk" }));
  await store.close();
  return "closed";
});
