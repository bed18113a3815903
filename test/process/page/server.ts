import { join } from 'node:path';
import type { ApiOptions } from '../../../src/api/api.ts';
import { serveHttp } from '../../../src/metrics/http.ts';
import { createMemoryLog } from '../../support/api-fakes.ts';
import { repository } from '../../support/daemon.ts';
import { closedAfterTest, startApi, type TestApi } from '../api/server.ts';

/** The page as a daemon serves it, over jobs that a test writes. */
export interface TestPage extends TestApi {
  /** The page's address, with a slash at its end. */
  readonly url: string;
}

type PageChoice = Partial<NonNullable<ApiOptions['page']>>;

export async function startPage(
  choice: PageChoice = {},
  changes: Parameters<typeof startApi>[0] = {},
  tokens: ApiOptions['tokens'] = { find: () => null, isEmpty: () => true },
): Promise<TestPage> {
  const folder = join(repository, 'dist', 'web');
  const address = 'http://127.0.0.1:1/';
  const page = {
    address,
    folder,
    door: 'LOCAL',
    ownNamesOnly: true,
    streamsMax: 8,
    ...choice,
  } as const;
  const api = await startApi(changes, undefined, undefined, () => ({ tls: null, tokens, page }));
  const http = await serveHttp({
    listen: '127.0.0.1:0',
    metrics: { render: async () => '' },
    grpc: () => [],
    live: () => true,
    ready: () => true,
    page: api.api.page,
    connectionsMax: 64,
    log: createMemoryLog().log,
  });
  return {
    ...api,
    url: `http://127.0.0.1:${http.port}/`,
    close: closedAfterTest(async () => {
      await http.close();
      await api.close();
    }),
  };
}
