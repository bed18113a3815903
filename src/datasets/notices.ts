/** How many notices a list keeps. */
const noticesKept = 20;

/** Collects what a user should know of an import that went well, a sentence each. */
export class NoticeList {
  readonly #kept: string[] = [];
  #dropped = 0;

  /** The first ones, and how many more there were. */
  get kept(): readonly string[] {
    return this.#dropped === 0 ? this.#kept : [...this.#kept, `and ${this.#dropped} more notices`];
  }

  /** `sentence` has no line break and no full stop. */
  add(sentence: string): void {
    if (this.#kept.length < noticesKept) this.#kept.push(sentence);
    else this.#dropped += 1;
  }
}
