import { randomUUID } from 'node:crypto';
import type {
  DescMessage,
  DescMethodUnary,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { sleep } from '../../base/clock.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { type ApiClient, ApiError, createApiClient, type Identity } from './client.ts';
import { CliError } from './exit.ts';
import { type IdentityFlags, identityOf } from './identity.ts';
import type { CliIo } from './io.ts';
import { createStyle, type Glyphs, glyphsOf, harmless, type Style } from './terminal.ts';
import { formatDuration, parseDurationMs } from './units.ts';

export const formats = ['table', 'wide', 'json', 'jsonl', 'yaml', 'name', 'plain'] as const;
export type Format = (typeof formats)[number];
export const colorModes = ['auto', 'always', 'never'] as const;
export type ColorMode = (typeof colorModes)[number];

/** Flags that every command takes, as commander reads them. */
export interface GlobalFlags extends IdentityFlags {
  readonly address?: string;
  readonly timeout?: string;
  readonly output?: Format;
  /** False with `--no-headers`. */
  readonly headers: boolean;
  readonly color: ColorMode;
  readonly quiet?: boolean;
  readonly requestId?: string;
}

/** Calls that nobody gave a time: the server's own default. */
const callTimeoutMs = 10_000;
/** How long a daemon that says "not yet" is asked again. */
const retryLimitMs = 15_000;

/** One run of gnnctl: its flags, its streams and its connection. */
export class Session {
  readonly io: CliIo;
  readonly format: Format;
  readonly hasHeaders: boolean;
  readonly isQuiet: boolean;
  /** Time of `--timeout`; null: none was given. */
  readonly timeoutMs: number | null;
  readonly requestId: string;
  /** For stdout. */
  readonly style: Style;
  /** For stderr. */
  readonly errorStyle: Style;
  readonly glyphs: Glyphs;
  readonly address: string;
  readonly #identity: Identity;
  #client: ApiClient | null = null;

  constructor(io: CliIo, flags: GlobalFlags) {
    this.io = io;
    this.address = addressOf(flags.address ?? io.env['GNND_ADDRESS'] ?? '', io.env);
    this.#identity = identityOf(this.address, flags, io.env);
    this.format = flags.output ?? (io.stdout.isTty ? 'table' : 'plain');
    this.hasHeaders = flags.headers;
    this.isQuiet = flags.quiet === true;
    this.timeoutMs = timeoutOf(flags.timeout);
    this.requestId = flags.requestId ?? randomUUID();
    this.style = createStyle(isColoured(flags.color, io, io.stdout.isTty));
    this.errorStyle = createStyle(isColoured(flags.color, io, io.stderr.isTty));
    this.glyphs = glyphsOf(io.env);
  }

  get client(): ApiClient {
    this.#client ??= createApiClient(this.address, this.#identity);
    return this.#client;
  }

  /** One call. A daemon that is there and says "not yet" is asked again for a while. */
  async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    signal?: AbortSignal,
  ): Promise<MessageShape<O>> {
    const startMs = this.io.clock.monotonicMs();
    const limitMs = this.timeoutMs ?? retryLimitMs;
    for (;;) {
      const spentMs = this.io.clock.monotonicMs() - startMs;
      const timeoutMs = this.timeoutMs === null ? callTimeoutMs : this.timeoutMs - spentMs;
      try {
        const options = signal === undefined ? { timeoutMs } : { timeoutMs, signal };
        return await this.client.unary(method, request, options);
      } catch (error) {
        const delayMs = retryDelayOf(error);
        if (delayMs === null || spentMs + delayMs >= limitMs) throw error;
        this.say(`the daemon is not ready yet; asking again in ${formatDuration(delayMs)}`);
        await sleep(delayMs, signal);
      }
    }
  }

  /** For people: on stderr, unless --quiet. */
  say(text: string): void {
    if (!this.isQuiet) this.io.stderr.write(`${harmless(text)}\n`);
  }

  /** Data: on stdout. */
  print(text: string): void {
    const shown = harmless(text);
    this.io.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`);
  }

  close(): void {
    this.#client?.close();
  }
}

function retryDelayOf(error: unknown): number | null {
  const isNotYet = error instanceof ApiError && error.code === status.UNAVAILABLE;
  return isNotYet ? error.retryDelayMs : null;
}

type Environment = CliIo['env'];

/** The gRPC target of what a user typed; empty: the default socket. */
export function addressOf(given: string, env: Environment): string {
  if (given === '') {
    const folder = env['XDG_RUNTIME_DIR'] || '/run';
    return `unix:${folder}/gnnd/gnnd.sock`;
  }
  if (given.startsWith('/') || given.startsWith('./')) return `unix:${given}`;
  const address = given.replace(/^(tcp|http):\/\//, '').replace(/^unix:\/\/\//, 'unix:/');
  // Behind `unix:` shells leave it as it is.
  return address.replace(/^unix:~(?=\/)/, `unix:${env['HOME'] ?? '~'}`);
}

function timeoutOf(given: string | undefined): number | null {
  if (given === undefined) return null;
  const timeoutMs = parseDurationMs(given);
  if (timeoutMs !== null && timeoutMs > 0) return timeoutMs;
  const shown = JSON.stringify(given);
  throw new CliError(gnnctlExit.USAGE, `--timeout ${shown}: expected a duration such as 30s or 5m`);
}

function isColoured(mode: ColorMode, { env }: CliIo, isTty: boolean): boolean {
  if (mode !== 'auto') return mode === 'always';
  return isTty && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}
