import { homedir } from "node:os";
import { isAbsolute } from "node:path";

/**
 * The user's home; null for one who has none: in a container a user may be no more than a number, for which
 * `os.homedir` throws.
 */
export function homeFolder(home: () => string = homedir): string | null {
  try {
    const found = home();
    return isAbsolute(found) ? found : null;
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}
