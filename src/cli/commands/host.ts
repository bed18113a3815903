import type { Command } from 'commander';
import {
  type Device,
  DeviceKindSchema,
  DeviceSchema,
  DeviceState,
  DeviceStateSchema,
  HostSchema,
  HostService,
  LinkKind,
  LinkKindSchema,
  ListDevicesResponseSchema,
} from '../../api/gen/gnnd/v1/host_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import { shortName } from '../../spec/enum-names.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { printable } from '../session/terminal.ts';
import { formatAge, formatBytes } from '../session/units.ts';
import { idOf, isoTime, wallMs } from '../show/job-text.ts';
import { type Column, printList, printOne } from '../show/output.ts';

/** `gnnctl device ...` and `gnnctl host ...`. */
export function addHostCommands(program: Command, run: Run): void {
  const device = program.command('device').description('devices of the host');
  device
    .command('drain')
    .description('suspend the job on a device and give it to no other')
    .argument('<device>')
    .action(run(drainDevice));
  device
    .command('undrain')
    .description('give a drained device back to jobs')
    .argument('<device>')
    .action(run(undrainDevice));
  device
    .command('list')
    .alias('ls')
    .description('list devices and the jobs that have them')
    .action(run(listDevices));
  program
    .command('host')
    .description('the machine the daemon runs on')
    .command('status')
    .description('show version, capacity and health; exit code 8 when not ready')
    .action(run(hostStatus));
}

async function listDevices(session: Session): Promise<number> {
  const answer = await session.call(HostService.method.listDevices, {});
  printList(session, {
    schema: ListDevicesResponseSchema,
    message: answer,
    rowSchema: DeviceSchema,
    rows: answer.devices,
    columns: deviceColumns(session),
    nameOf: ({ name }) => name,
  });
  if (answer.devices.length === 0) session.say('no devices');
  return gnnctlExit.OK;
}

async function drainDevice(session: Session, given: string): Promise<number> {
  const name = given.startsWith('devices/') ? given : `devices/${given}`;
  return printDevice(session, await session.call(HostService.method.drainDevice, { name }));
}

async function undrainDevice(session: Session, given: string): Promise<number> {
  const name = given.startsWith('devices/') ? given : `devices/${given}`;
  return printDevice(session, await session.call(HostService.method.undrainDevice, { name }));
}

function printDevice(session: Session, device: Device): number {
  printOne(session, {
    schema: DeviceSchema,
    message: device,
    name: device.name,
    facts: () => [
      ['Device', idOf(device.name), device.name],
      ['State', shortName(DeviceStateSchema, device.state)],
      ['Job', device.job === '' ? '' : idOf(device.job), device.job],
    ],
  });
  return gnnctlExit.OK;
}

function deviceColumns({ style }: Session): readonly Column<Device>[] {
  const stateText = ({ state }: Device) => shortName(DeviceStateSchema, state);
  return [
    { title: 'DEVICE', shown: ({ name }) => idOf(name) },
    { title: 'KIND', shown: ({ kind }) => shortName(DeviceKindSchema, kind) },
    {
      title: 'STATE',
      shown(device) {
        const text = stateText(device);
        if (device.state === DeviceState.FREE) return style.green(text);
        return device.state === DeviceState.QUARANTINED ? style.red(text) : style.cyan(text);
      },
      plain: stateText,
    },
    { title: 'JOB', shown: ({ job }) => (job === '' ? '-' : idOf(job)), plain: ({ job }) => job },
    { title: 'CORES', shown: ({ cores }) => cores.join(',') },
    {
      title: 'MEMORY',
      shown: (device) => memoryText(device),
      plain: ({ budgetBytes }) => String(budgetBytes),
    },
    { title: 'UUID', shown: ({ uuid }) => printable(uuid) },
    { title: 'PEERS', shown: peersText },
    { title: 'NOTE', shown: ({ note }) => printable(note) },
  ];
}

/** Devices whose memory it reaches, and over what. */
function peersText({ peers, peerLinks }: Device): string {
  return peers
    .map((name, at) => {
      const link = peerLinks[at] ?? LinkKind.UNSPECIFIED;
      const over = link === LinkKind.UNSPECIFIED ? '' : ` ${shortName(LinkKindSchema, link)}`;
      return `${idOf(name)}${over}`;
    })
    .join(', ');
}

/** The device's memory, and how much of it gnnd may use where that is only a part. */
function memoryText({ memoryBytes, budgetBytes }: Device): string {
  if (memoryBytes === 0n) return '';
  const whole = formatBytes(Number(memoryBytes));
  return budgetBytes === 0n || budgetBytes === memoryBytes
    ? whole
    : `${formatBytes(Number(budgetBytes))} of ${whole}`;
}

async function hostStatus(session: Session): Promise<number> {
  const host = await session.call(HostService.method.getHost, {});
  const startMs = wallMs(host.startTime);
  const up = startMs === null ? '' : formatAge(session.io.clock.wallMs() - startMs);
  const jobs = Object.entries(host.jobs).filter(([, count]) => count > 0n);
  const { style } = session;
  if (!session.isQuiet) {
    printOne(session, {
      schema: HostSchema,
      message: host,
      name: host.hostname,
      facts: () => [
        ['Host', style.bold(printable(host.hostname)), host.hostname],
        ['Ready', host.ready ? style.green('yes') : style.red('no'), String(host.ready)],
        ['Version', host.version],
        ['Up for', up, isoTime(host.startTime), 'start_time'],
        ['Process id', String(host.pid), String(host.pid), 'pid'],
        ['Cores', `${host.cores} (${host.instructionSet})`, String(host.cores)],
        ['Instructions', '', host.instructionSet],
        ['Memory', formatBytes(Number(host.memoryBytes)), String(host.memoryBytes), 'memory_bytes'],
        ['State', host.stateDir, host.stateDir, 'state_dir'],
        ['Jobs', jobs.map(([state, count]) => `${count} ${state}`).join(', ')],
        ['Notes', host.notes.map(printable).join('; ')],
      ],
    });
  }
  return host.ready ? gnnctlExit.OK : gnnctlExit.UNAVAILABLE;
}
