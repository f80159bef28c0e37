import { homedir } from "node:os";
import { isAbsolute } from "node:path";

/**
 * The user's home folder; null if there is none. In a container a user may be just a number, and `os.homedir` throws.
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
