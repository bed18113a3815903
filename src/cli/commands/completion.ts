import { Argument, type Command, type Option } from 'commander';
import { DatasetService } from '../../api/gen/gnnd/v1/dataset_service_pb.ts';
import { JobService } from '../../api/gen/gnnd/v1/job_service_pb.ts';
import { gnnctlExit } from '../../base/exit-codes.ts';
import type { Run } from '../session/run.ts';
import type { Session } from '../session/session.ts';
import { idOf } from '../show/job-text.ts';

/**
 * Completion for shells. The scripts are thin: they ask `gnnctl __complete WORDS...`, which knows
 * the commands and asks the daemon for ids; so both shells offer the same, and it cannot go stale.
 */
export function addCompletion(program: Command, run: Run): void {
  program
    .command('completion')
    .description('print a completion script, e.g. for source <(gnnctl completion bash)')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh']))
    .action(
      run(async (session, shell: string) => {
        session.print(shell === 'bash' ? bashScript : zshScript);
        return gnnctlExit.OK;
      }),
    );
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false)
    .action(
      run(async (session, words: readonly string[]) => {
        for (const candidate of await completionsOf(session, program, words)) {
          session.print(candidate);
        }
        return gnnctlExit.OK;
      }),
    );
}

/** Stands for "any file" in the answer of `__complete`. */
const anyFile = ':files';

/** What may stand in place of the last of `words`, all that begins with it. */
export async function completionsOf(
  session: Session,
  program: Command,
  words: readonly string[],
): Promise<readonly string[]> {
  const current = words.at(-1) ?? '';
  const place = placeOf(program, words.slice(0, -1));
  const candidates = await candidatesAt(session, program, place, current);
  return candidates.filter((word) => word.startsWith(current) || word === anyFile);
}

interface Place {
  readonly command: Command;
  /** The option whose value comes next. */
  readonly option: Option | null;
  /** How many arguments of the command are there already. */
  readonly argumentCount: number;
}

function placeOf(program: Command, words: readonly string[]): Place {
  let command = program;
  let option: Option | null = null;
  let argumentCount = 0;
  for (const word of words) {
    if (option !== null) option = null;
    else if (word.startsWith('-')) {
      const named = optionsOf(program, command).find(
        ({ short, long }) => short === word || long === word,
      );
      option = named !== undefined && (named.required || named.optional) ? named : null;
    } else {
      const below = command.commands.find(
        (candidate) => candidate.name() === word || candidate.aliases().includes(word),
      );
      if (below !== undefined) command = below;
      else argumentCount += 1;
    }
  }
  return { command, option, argumentCount };
}

function optionsOf(program: Command, command: Command): readonly Option[] {
  return command === program ? program.options : [...command.options, ...program.options];
}

async function candidatesAt(
  session: Session,
  program: Command,
  { command, option, argumentCount }: Place,
  current: string,
): Promise<readonly string[]> {
  if (option !== null) {
    if (option.argChoices !== undefined) return option.argChoices;
    return option.long === '--file' ? [anyFile] : [];
  }
  if (current.startsWith('-')) {
    const options = optionsOf(program, command).flatMap(({ long }) => long ?? []);
    return ['--help', ...options];
  }
  const isHidden = (name: string) => name.startsWith('__');
  const names = command.commands.map((below) => below.name()).filter((name) => !isHidden(name));
  if (names.length > 0) return names;
  const { registeredArguments: known } = command;
  const last = known.at(-1);
  const argument = known[argumentCount] ?? (last?.variadic === true ? last : undefined);
  switch (argument?.name()) {
    case 'job':
      return await jobIds(session);
    case 'dataset':
      return await datasetIds(session);
    case 'source':
      return [anyFile];
    default:
      return argument?.argChoices ?? [];
  }
}

/** Nobody waits long for a completion. */
const completionTimeoutMs = 1000;
const idsMax = 100;

async function jobIds({ client }: Session): Promise<readonly string[]> {
  const options = { timeoutMs: completionTimeoutMs };
  const request = { pageSize: idsMax };
  const page = await client.unary(JobService.method.listJobs, request, options).catch(() => null);
  return page === null ? [] : page.jobs.map(({ name }) => idOf(name));
}

async function datasetIds({ client }: Session): Promise<readonly string[]> {
  const options = { timeoutMs: completionTimeoutMs };
  const request = { pageSize: idsMax };
  const method = DatasetService.method.listDatasets;
  const page = await client.unary(method, request, options).catch(() => null);
  return page === null ? [] : page.datasets.map(({ name }) => idOf(name));
}

const bashScript = `# Completion of gnnctl in bash; use: source <(gnnctl completion bash)
_gnnctl() {
  local current=\${COMP_WORDS[COMP_CWORD]} words line
  words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ${anyFile} ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
    else
      COMPREPLY+=("$line")
    fi
  done < <("\${COMP_WORDS[0]}" __complete -- "\${words[@]}" 2>/dev/null)
}
complete -F _gnnctl gnnctl
`;

const zshScript = `#compdef gnnctl
# Completion of gnnctl in zsh; use: source <(gnnctl completion zsh)
_gnnctl() {
  local line
  local -a candidates
  while IFS= read -r line; do
    if [[ $line == ${anyFile} ]]; then
      _files
    else
      candidates+=("$line")
    fi
  done < <("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  compadd -a candidates
}
compdef _gnnctl gnnctl
`;
