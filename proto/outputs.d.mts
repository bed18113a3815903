import type { DescExtension, DescMessage } from '@bufbuild/protobuf';

export const tableMarks: readonly [string, string];
export function fieldTable(spec: DescMessage, extension: DescExtension): string;
export function nativeTables(messageOf: (typeName: string) => DescMessage): string;
