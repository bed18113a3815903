import { create } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import {
  type Health,
  type HealthCheckResponse,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from './gen/grpc/health/v1/health_pb.ts';
import { ProtocolError } from './grpc-status.ts';
import type { Handlers, MethodsOf } from './rpc.ts';
import { createBell, pause, type Sleep } from './wait.ts';

/** `grpc.health.v1`: all services are healthy together, and so is the server, named "". */
export interface HealthState {
  readonly handlers: Handlers<MethodsOf<typeof Health>>;
  setServing(serving: boolean): void;
}

/** A watch looks again at least this often; it is woken by every change. */
const idlePeriodMs = 60_000;

/** Not serving at first. */
export function createHealth(services: readonly string[], sleep: Sleep): HealthState {
  const known = new Set(['', ...services]);
  const bell = createBell();
  let serving = false;
  const statusOf = (service: string): ServingStatus => {
    if (!known.has(service)) return ServingStatus.SERVICE_UNKNOWN;
    return serving ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  };
  const response = (value: ServingStatus): HealthCheckResponse =>
    create(HealthCheckResponseSchema, { status: value });
  return {
    handlers: {
      check(request) {
        const value = statusOf(request.service);
        if (value === ServingStatus.SERVICE_UNKNOWN) {
          throw new ProtocolError(status.NOT_FOUND, 'unknown service');
        }
        return response(value);
      },
      async *watch(request, call) {
        let sent: ServingStatus | null = null;
        for (;;) {
          const rung = bell.next();
          const value = statusOf(request.service);
          if (value !== sent) {
            sent = value;
            yield response(value);
            continue;
          }
          if (call.signal.aborted) throw call.signal.reason;
          await pause(rung, idlePeriodMs, sleep, call.signal);
        }
      },
    },
    setServing(value) {
      if (value === serving) return;
      serving = value;
      bell.ring();
    },
  };
}
