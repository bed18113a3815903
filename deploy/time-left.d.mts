/** Says how long a native build has to go (deploy/time-left.mjs). */
export function timeLeft(commands: string): {
  hear(text: string): void;
  words(line: string, ms: number): string;
};
