import { create, toBinary } from '@bufbuild/protobuf';
import type { StoredEpoch } from '../store/store.ts';
import { epochInit } from './convert-job.ts';
import { WatchJobResponseSchema } from './gen/gnnd/v1/job_service_pb.ts';

/**
 * Epochs as watches send them: read and encoded once, however many watch. The reports of an
 * attempt are cut into pages of 100; a page is kept with the bytes of its reports one after the
 * other, so that whoever is behind gets any part of it as it lies there.
 */
export interface EpochPages {
  /**
   * The epochs of an attempt from `first` on whose revisions are below `before`, up to the end of a
   * page; null when there is none. Throws JOB_NOT_FOUND.
   */
  slice(job: WatchedJob, first: number, before: number): EpochSlice | null;
}

export interface WatchedJob {
  readonly id: string;
  readonly uid: string;
  readonly attempt: number;
}

export interface EpochSlice {
  readonly count: number;
  /** Revision of the slice's last epoch. */
  readonly revision: number;
  /** A WatchJobResponse that has nothing but these epochs. */
  readonly bytes: Uint8Array;
  /** Whether it ends where a page does: more may be there already. */
  readonly endsPage: boolean;
}

export type ReadEpochs = (
  id: string,
  attempt: number,
  first: number,
  limit: number,
) => readonly StoredEpoch[];

/** Reports in a page, and so in one response. */
export const epochsPerPage = 100;
/** About 2 MB. */
const pagesKept = 64;

interface Page {
  /** Where each report ends in `bytes`. */
  readonly ends: number[];
  readonly revisions: number[];
  bytes: Buffer;
}

export function createEpochPages(read: ReadEpochs): EpochPages {
  const pages = new Map<string, Page>();

  /** The page, most recently used last. */
  const take = (key: string): Page => {
    const page = pages.get(key) ?? { ends: [], revisions: [], bytes: Buffer.alloc(0) };
    pages.delete(key);
    pages.set(key, page);
    for (const oldest of pages.keys()) {
      if (pages.size <= pagesKept) break;
      pages.delete(oldest);
    }
    return page;
  };

  const fill = (page: Page, { id, attempt }: WatchedJob, start: number) => {
    const have = page.ends.length;
    if (have === epochsPerPage) return;
    const added = read(id, attempt, start + have, epochsPerPage - have);
    if (added.length === 0) return;
    const parts = added.map(({ report }) =>
      toBinary(
        WatchJobResponseSchema,
        create(WatchJobResponseSchema, { epochs: [epochInit(report, [])] }),
      ),
    );
    let end = page.bytes.length;
    parts.forEach((part, index) => {
      end += part.length;
      page.ends.push(end);
      page.revisions.push(added[index]?.revision ?? 0);
    });
    page.bytes = Buffer.concat([page.bytes, ...parts]);
  };

  return {
    slice(job, first, before) {
      const index = Math.floor(first / epochsPerPage);
      const page = take(`${job.uid}/${job.attempt}/${index}`);
      fill(page, job, index * epochsPerPage);
      const from = first - index * epochsPerPage;
      let to = from;
      while (to < page.ends.length && (page.revisions[to] ?? before) < before) to += 1;
      if (to <= from) return null;
      return {
        count: to - from,
        revision: page.revisions[to - 1] ?? 0,
        bytes: page.bytes.subarray(page.ends[from - 1] ?? 0, page.ends[to - 1]),
        endsPage: to === epochsPerPage,
      };
    },
  };
}
