/** The objects of a test Worker. */
export interface Namespace {
  newUniqueId(): unknown;
  idFromName(name: string): unknown;
  get(id: unknown): { fetch(request: Request): Promise<Response> };
}

export interface Env {
  readonly OBJECTS: Namespace;
}
