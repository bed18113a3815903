import type { DescField, Message } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

/**
 * Puts a part that is encoded already into a message, as one more value of a field of messages.
 * Writing the message copies the bytes; nobody reads them in between. They travel as a field that
 * the message does not know, which is what a writer passes on as it is.
 */
export function embed(message: Message, { number }: DescField, bytes: Uint8Array): void {
  const data = new BinaryWriter().bytes(bytes).finish();
  message.$unknown ??= [];
  message.$unknown.push({ no: number, wireType: WireType.LengthDelimited, data });
}
