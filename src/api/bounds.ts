import type { DescMessage, Message } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import type { FieldViolation } from '../base/errors.ts';

/**
 * Bounds that hold for every request before anybody looks at what is in it: a handler may then do
 * something for each item of a list.
 */

/** Bytes; the largest spec with all its names takes a third. */
export const requestBytesMax = 256 * 1024;

/** More than any list of a request has a use for: devices, fanouts, ratios, states. */
export const listItemsMax = 1024;

/** Lists that are too long, by their paths; what is in them is not looked at. */
export function longLists(schema: DescMessage, message: Message): readonly FieldViolation[] {
  return inMessage(reflect(schema, message), '');
}

function inMessage(message: ReflectMessage, at: string): FieldViolation[] {
  return message.fields.flatMap((field) => {
    if (!message.isSet(field)) return [];
    const path = `${at}${field.name}`;
    if (field.fieldKind === 'message') return inMessage(message.get(field), `${path}.`);
    if (field.fieldKind !== 'list') return [];
    const list = message.get(field);
    if (list.size > listItemsMax) {
      const description = `${list.size} given: expected at most ${listItemsMax}`;
      return [{ path, description }];
    }
    if (field.listKind !== 'message') return [];
    return [...list].flatMap((item, i) => inMessage(item as ReflectMessage, `${path}[${i}].`));
  });
}
