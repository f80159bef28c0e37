import { describeSearch } from "./search-cases.ts";
import { kinds, Site } from "./search-stores.ts";

for (const kind of kinds) describeSearch(kind, () => new Site(kind));
