/** A page of a list, and the token of the next; empty on the last. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextToken: string;
}

const pageSizeMax = 500;

/** Up to `limit` items (0: all) and whether there are more. */
export async function collectPages<T>(
  limit: number,
  fetchPage: (pageSize: number, pageToken: string) => Promise<Page<T>>,
): Promise<{ items: T[]; hasMore: boolean }> {
  const items: T[] = [];
  let token = '';
  do {
    const wanted = limit === 0 ? pageSizeMax : Math.min(pageSizeMax, limit - items.length);
    const page = await fetchPage(wanted, token);
    items.push(...page.items);
    token = page.nextToken;
  } while (token !== '' && (limit === 0 || items.length < limit));
  return { items, hasMore: token !== '' };
}
