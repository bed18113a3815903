import {
  cudaVersionText,
  type DeviceProbe,
  objectionTo,
  type ProbeAnswer,
  type ProbedDevice,
  remarksOn,
} from '../../base/device-probe.ts';
import { setupCommand } from '../../base/package-root.ts';
import { formatBytes } from '../session/units.ts';

/** What `gnnctl doctor` says about GPUs: a finding for the driver, and one or more for each GPU. */

/** `missing`: gnnd cannot work without it; `advice`: it works, but something is worth knowing. */
export type Verdict = 'ok' | 'advice' | 'missing';

export interface Finding {
  readonly what: string;
  readonly verdict: Verdict;
  readonly found: string;
  /** The command that gets it, or what to do; empty when there is nothing. */
  readonly command: string;
}

/** `driver` is the version of the kernel's module; null without one. */
export function notBuiltFinding(driver: string | null): Finding {
  const what = 'CUDA';
  if (driver === null) {
    return { what, verdict: 'ok', found: 'no driver: jobs run on CPU devices', command: '' };
  }
  const found = `driver ${driver}, but gnnd was built without its CUDA plug-in`;
  return {
    what,
    verdict: 'advice',
    found,
    command: `install the CUDA toolkit, then ${setupCommand}`,
  };
}

/** `probe` is null where the probe itself gave no answer. */
export function gpuFindings(probe: DeviceProbe | null, driver: string | null): readonly Finding[] {
  const what = 'CUDA';
  if (probe === null) {
    const found = 'asking the driver failed or took too long: jobs run on CPU devices';
    return [{ what, verdict: 'advice', found, command: 'dmesg | grep -i xid' }];
  }
  const { code, message, remedy } = probe.answer;
  if (code === 'NO_DRIVER' && driver === null) {
    return [{ what, verdict: 'ok', found: 'no driver: jobs run on CPU devices', command: '' }];
  }
  if (code !== 'OK') return [{ what, verdict: 'advice', found: message, command: remedy }];
  const version = cudaVersionText(probe.driverVersion);
  const built = `${probe.build}${torchText(probe)}`;
  const serves = `driver ${driver ?? 'unknown'}, CUDA ${version}, ${built}`;
  const watcher: Finding[] =
    probe.monitor === ''
      ? []
      : [
          {
            what: 'NVML',
            verdict: 'advice',
            found: `who else uses the GPUs is unknown: ${probe.monitor}`,
            command: "install the driver's libnvidia-ml.so.1",
          },
        ];
  return [
    { what, verdict: 'ok', found: serves, command: '' },
    ...watcher,
    ...probe.devices.flatMap(findingsOf),
  ];
}

function torchText({ torch }: DeviceProbe): string {
  if (torch === null) return '';
  const builtFor = torch.cuda === 0 ? 'without CUDA' : `for CUDA ${cudaVersionText(torch.cuda)}`;
  return `, PyTorch ${torch.version} ${builtFor}`;
}

function findingsOf(device: ProbedDevice): readonly Finding[] {
  const what = `cuda:${device.index}`;
  const advise = ({ message, remedy }: ProbeAnswer): Finding => ({
    what,
    verdict: 'advice',
    found: message,
    command: remedy,
  });
  const objection = objectionTo(device, { mayShare: false, own: new Set() });
  if (objection !== null) return [advise(objection)];
  const { name, uuid, architecture, multiprocessors, totalBytes, freeBytes } = device;
  const memory =
    freeBytes === null
      ? formatBytes(totalBytes)
      : `${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} free`;
  const found = `${name}, sm_${architecture}, ${multiprocessors} SMs, ${memory}, ${uuid}`;
  return [{ what, verdict: 'ok', found, command: '' }, ...remarksOn(device).map(advise)];
}
