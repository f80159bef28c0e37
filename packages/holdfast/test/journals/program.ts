/**
 * Writes the sessions of `journals.ts` into one store, each up to its last step, and then waits to be killed: nothing
 * is closed. Prints the ids as one line of JSON. Arguments: the store's folder, the name of the program, the
 * folder it works in, the dialect, labels for all sessions as JSON.
 */
import { isHoldfastError, openStore } from "holdfast";
import { acp, aiSdk, lives, type Said, type Stage } from "./lives.ts";

const [folder, app, cwd, dialect, labels] = process.argv.slice(2);
const voice = [acp, aiSdk].find((one) => one.dialect === dialect)!;
const store = await openStore(folder!, { app: app!, recordsToolStarts: true, durability: "process" });
/** Does not promise to record every start. */
const blind = await openStore(folder!, { app: app!, durability: "process" });
const ids: Record<string, string> = {};
for (const { name, steps, until, isBlind } of lives()) {
  const session = await (isBlind ? blind : store).create<Said>({
    ...{ dialect: voice.dialect, title: name, cwd: cwd! },
    labels: JSON.parse(labels!.replaceAll("<name>", name)) as Record<string, string>,
  });
  const at: Stage = { voice, session, turn: null, draft: null, store };
  for (const step of steps.slice(0, until)) await step(at);
  await at.session.flush().catch((error: unknown) => {
    // Its last step closed it.
    if (!isHoldfastError(error, "SESSION_CLOSED")) throw error;
  });
  ids[name] = at.session.id;
}
process.stdout.write(`${JSON.stringify(ids)}\n`);
setInterval(() => {}, 60_000);
