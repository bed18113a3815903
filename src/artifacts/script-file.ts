import { closeSync, fstatSync, readSync } from 'node:fs';
import { openRegularSync } from '../base/regular-file.ts';

/**
 * What can be told of a TorchScript file without running it: a ZIP archive that has code, some of
 * it not torch's own. What only its program can tell is asked in a process of its own before a job
 * runs (model-probe.ts).
 */

const zipMagic = Buffer.from('PK\x03\x04', 'latin1');
const entryMagic = Buffer.from('PK\x01\x02', 'latin1');
const entryBytes = 46;
/** The directory at a ZIP file's end has some 100 bytes a member, and a member for each tensor. */
const tailBytesMax = 1 << 22;

/** What is wrong with the file at `path`; null if it may be a module. Throws the system's error. */
export function scriptProblem(path: string): string | null {
  const { head, tail } = endsOf(path);
  if (!head.equals(zipMagic)) return 'is no file that torch.jit.save wrote';
  const code = membersIn(tail)
    .filter((name) => /^[^/]+\/code\/.*\.py$/.test(name))
    .map((name) => name.slice(name.indexOf('/code/') + '/code/'.length));
  if (code.length === 0) {
    const remedy = 'save the module itself: torch.jit.script(model).save(path)';
    return `holds no program, as files of torch.save (a state_dict, a pickled module): ${remedy}`;
  }
  if (code.every((name) => name.startsWith('__torch__/torch/'))) {
    const remedy = 'a module of yours has one (docs/plugins.md)';
    return `holds modules of torch alone, which have no method layer: ${remedy}`;
  }
  return null;
}

/** Names in a ZIP directory (APPNOTE.TXT section 4.3.12), of which `tail` has all or the last. */
function membersIn(tail: Buffer): readonly string[] {
  const names: string[] = [];
  for (let at = tail.indexOf(entryMagic); at !== -1; at = tail.indexOf(entryMagic, at + 1)) {
    if (at + entryBytes > tail.length) break;
    const nameBytes = tail.readUInt16LE(at + 28);
    names.push(tail.toString('latin1', at + entryBytes, at + entryBytes + nameBytes));
  }
  return names;
}

function endsOf(path: string): { readonly head: Buffer; readonly tail: Buffer } {
  const fd = openRegularSync(path);
  try {
    const { size } = fstatSync(fd);
    const head = Buffer.alloc(Math.min(size, zipMagic.length));
    readSync(fd, head, 0, head.length, 0);
    const tail = Buffer.alloc(Math.min(size, tailBytesMax));
    readSync(fd, tail, 0, tail.length, size - tail.length);
    return { head, tail };
  } finally {
    closeSync(fd);
  }
}
