import {
  create,
  type DescMessage,
  type DescMethod,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from '@bufbuild/protobuf';

/** The API as the daemon gives it to its page: JSON over HTTP, of methods that only look. */

export type Method<I extends DescMessage, O extends DescMessage> = DescMethod & {
  readonly input: I;
  readonly output: O;
};

/** What the daemon answered instead; `reason` is that of google.rpc.ErrorInfo, or empty. */
export class ApiError extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

const tokenKey = 'gnnd-token';

/** Keeps the token for this tab and server; other servers of the host would get a cookie, too. */
export function storeToken(token: string): void {
  if (token === '') sessionStorage.removeItem(tokenKey);
  else sessionStorage.setItem(tokenKey, token);
}

export function hasToken(): boolean {
  return sessionStorage.getItem(tokenKey) !== null;
}

/** Rejects with ApiError; with a TypeError where the daemon cannot be reached. */
export async function call<I extends DescMessage, O extends DescMessage>(
  method: Method<I, O>,
  request: MessageInitShape<I>,
  signal?: AbortSignal,
): Promise<MessageShape<O>> {
  const response = await ask(method, request, signal);
  return read(method, (await response.json()) as JsonValue);
}

/** Messages as they come; ends with the stream, throws as `call` does. */
export async function* stream<I extends DescMessage, O extends DescMessage>(
  method: Method<I, O>,
  request: MessageInitShape<I>,
  signal: AbortSignal,
): AsyncGenerator<MessageShape<O>, void, void> {
  const response = await ask(method, request, signal);
  for await (const line of linesOf(response)) {
    const { result, error } = JSON.parse(line) as { result?: JsonValue; error?: ErrorBody };
    if (error !== undefined) throw new ApiError(200, error.reason, error.message);
    if (result !== undefined) yield read(method, result);
  }
}

interface ErrorBody {
  readonly reason: string;
  readonly message: string;
}

async function ask<I extends DescMessage, O extends DescMessage>(
  method: Method<I, O>,
  request: MessageInitShape<I>,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const json = JSON.stringify(toJson(method.input, create(method.input, request)));
  const url = `/api/${method.parent.typeName}/${method.name}?request=${encodeURIComponent(json)}`;
  const token = sessionStorage.getItem(tokenKey);
  const response = await fetch(url, {
    headers: token === null ? {} : { authorization: `Bearer ${token}` },
    cache: 'no-store',
    ...(signal === undefined ? {} : { signal }),
  });
  if (response.ok) return response;
  const { error } = ((await response.json().catch(() => ({}))) ?? {}) as { error?: ErrorBody };
  const message = error?.message ?? `the daemon answered ${response.status}`;
  throw new ApiError(response.status, error?.reason ?? '', message);
}

function read<I extends DescMessage, O extends DescMessage>(
  { output }: Method<I, O>,
  json: JsonValue,
): MessageShape<O> {
  // A newer daemon may say more than this page knows.
  return fromJson(output, json, { ignoreUnknownFields: true });
}

async function* linesOf(response: Response): AsyncGenerator<string, void, void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
