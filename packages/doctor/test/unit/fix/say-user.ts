import { userOf } from "../../../src/fix/open-files.ts";

// As a program: says who uses the session with this id.
process.stdout.write(userOf([], process.argv[2]!) ?? "nobody");
