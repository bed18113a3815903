export const canMakePython: boolean;
export function makePython(folder: string): void;
