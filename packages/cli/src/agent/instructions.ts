import { type FileHandle, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isOwn, type OwnStore } from "../tools/own-store.ts";
import { isInside } from "../tools/real-path.ts";
import { openRegular } from "../tools/regular-file.ts";
import { isSecret } from "../tools/secrets.ts";

const AGENTS_BYTES_MAX = 32 * 1024;

const MANNER = `You are the reference agent of Holdfast: you work in a folder on the user's machine, with tools.
- Look before you act: read what you are about to change.
- Call tools in parallel where they do not depend on each other.
- A result may say that a call never ran, or that its outcome is unknown, because this agent was killed or stopped. Then check what is there before you repeat it.
- A call may be denied. Do not try to reach the same thing by another way: say what you would need.
- When the task is done, say in a few words what you did.`;

/** What the model is told before the conversation. Not recorded: it is made anew for each request from the files as they are. */
export async function instructions(cwd: string, own: OwnStore | null = null): Promise<string> {
  const rules = await agentsFiles(cwd, own);
  const parts = [MANNER, `The folder is ${cwd}.`];
  for (const { path, text } of rules) parts.push(`From ${path}:\n\n${text}`);
  return parts.join("\n\n");
}

/** AGENTS.md of this folder and of those above it up to the root of the repository, outermost first. Outside of one, of this folder alone: what lies above may be anybody's (`/tmp`). */
async function agentsFiles(
  cwd: string,
  own: OwnStore | null,
): Promise<{ readonly path: string; readonly text: string }[]> {
  const folders = [cwd];
  while (!(await isThere(join(folders[0]!, ".git")))) {
    const above = dirname(folders[0]!);
    if (above === folders[0]) {
      folders.splice(0, folders.length - 1);
      break;
    }
    folders.unshift(above);
  }
  const found: { path: string; text: string }[] = [];
  for (const folder of folders) {
    const path = join(folder, "AGENTS.md");
    const text = await textAt(path, folders[0]!, own);
    if (text !== null) found.push({ path, text });
  }
  return found;
}

async function textAt(path: string, root: string, own: OwnStore | null): Promise<string | null> {
  let file: FileHandle | null = null;
  try {
    // In a folder of somebody else's it may be a link to a file of ours, which is none of the model's business.
    const real = await realpath(path);
    if (isSecret(real) || !isInside(await realpath(root), real) || (own && isOwn(own, real))) return null;
    // Nor may it be a pipe, which would be waited for.
    file = await openRegular(real, path);
    const { bytesRead, buffer } = await file.read(new Uint8Array(AGENTS_BYTES_MAX + 1), 0, AGENTS_BYTES_MAX + 1, 0);
    if (bytesRead <= AGENTS_BYTES_MAX) return new TextDecoder().decode(buffer.subarray(0, bytesRead));
    // Half a character at the cut is left out.
    const text = new TextDecoder().decode(buffer.subarray(0, AGENTS_BYTES_MAX), { stream: true });
    return `${text}\n[cut here: the file is longer]`;
  } catch {
    // A file that is not there, or not readable, has no rules for us.
    return null;
  } finally {
    await file?.close();
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
