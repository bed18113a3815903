/** Of a Python: what native code links to (deploy/native.mjs). */
export interface Libraries {
  readonly torch: string;
  readonly products: string;
  readonly folders: Readonly<Record<string, string>>;
  readonly hasCuda: boolean;
}

export function packPrebuilt(folder: string, libraries: Libraries): Promise<void>;
