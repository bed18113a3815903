export declare function double(number: number): number;
export declare function makeArrays(length: number): {
  readonly own: Uint8Array;
  readonly part: Uint8Array;
  readonly length: number;
};
export declare function spin(flag: Int32Array): never;
export declare function hold(flag: Int32Array): string;
export declare function die(input: null): never;
export declare function dieLater(input: null): Promise<never>;
export declare function throwAsTold(input: { readonly kind: string }): Promise<never>;
