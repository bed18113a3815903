import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { JobState } from '../../../src/api/gen/gnnd/v1/job_pb.ts';
import { exitCodeOfJob, exitCodeOfStatus } from '../../../src/cli/session/exit.ts';

test('every gRPC status has the documented exit code', () => {
  const codes = Object.values(status).filter((code) => typeof code === 'number');
  expect(Object.fromEntries(codes.map((code) => [status[code], exitCodeOfStatus(code)]))).toEqual({
    OK: 0,
    CANCELLED: 1,
    UNKNOWN: 1,
    INVALID_ARGUMENT: 3,
    DEADLINE_EXCEEDED: 9,
    NOT_FOUND: 4,
    ALREADY_EXISTS: 5,
    PERMISSION_DENIED: 7,
    RESOURCE_EXHAUSTED: 6,
    FAILED_PRECONDITION: 5,
    ABORTED: 5,
    OUT_OF_RANGE: 1,
    UNIMPLEMENTED: 1,
    INTERNAL: 13,
    UNAVAILABLE: 8,
    DATA_LOSS: 13,
    UNAUTHENTICATED: 7,
  });
});

test('the end of an awaited job is told apart', () => {
  expect(exitCodeOfJob(JobState.SUCCEEDED)).toBe(0);
  expect(exitCodeOfJob(JobState.FAILED)).toBe(10);
  expect(exitCodeOfJob(JobState.CANCELLED)).toBe(11);
  expect(exitCodeOfJob(JobState.RUNNING)).toBe(1);
});
