/**
 * Makes this process live at another time, so that a recorded session has the times of a working day. Only what reads
 * the date is moved; timers run as usual.
 */
export class Clock {
  #nowMs: number;

  constructor(start: string) {
    this.#nowMs = Date.parse(start);
    const now = (): number => this.#nowMs;
    const Real = Date;
    globalThis.Date = class extends Real {
      constructor(...given: []) {
        if (given.length === 0) super(now());
        else super(...given);
      }
      static override now(): number {
        return now();
      }
    } as DateConstructor;
  }

  pass(ms: number): void {
    this.#nowMs += ms;
  }

  goTo(time: string): void {
    this.#nowMs = Date.parse(time);
  }
}
