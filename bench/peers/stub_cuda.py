"""Makes shared libraries in place of the CUDA ones that this environment's PyTorch was linked with.

The loader resolves every symbol of a library when Python imports it, so each missing library must
exist and define, under the right symbol versions, all that the others take from it. Every function
made here traps: should a CPU run ever call one, it dies instead of computing something wrong.

Run with the environment's own Python; gcc and readelf do the work. Prints what it made.
"""
import collections
import importlib.util
import os
import re
import subprocess
import sysconfig
import tempfile


def read(option, path):
    command = ['readelf', '--wide', option, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(path):
    return re.findall(r'\(NEEDED\).*\[(.+)\]', read('--dynamic', path))


def version_files(path):
    """{symbol version: the library that it is asked of}"""
    files, current = {}, None
    for line in read('--version-info', path).splitlines():
        file = re.search(r'Version: 1  File: (\S+)', line)
        if file:
            current = file[1]
        name = re.search(r'Name: (\S+)  Flags', line)
        if name and current:
            files[name[1]] = current
    return files


def symbols(path):
    """(undefined, defined): (name, version or None) of the dynamic symbols"""
    undefined, defined = set(), set()
    for line in read('--dyn-syms', path).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].endswith(':') or fields[4] == 'LOCAL':
            continue
        name, _, version = fields[7].partition('@')
        if fields[6] == 'UND':
            undefined.add((name, version.lstrip('@') or None))
        else:
            defined.add(name)
    return undefined, defined


def compile_stub(soname, wanted, folder):
    """wanted: {version or None: names}"""
    names = sorted(set().union(*wanted.values())) if wanted else []
    with tempfile.TemporaryDirectory() as work:
        source, script = os.path.join(work, 'stub.c'), os.path.join(work, 'stub.map')
        with open(source, 'w') as file:
            for name in names:
                file.write(f'void {name}(void) {{ __builtin_trap(); }}\n')
        versions = {version for version in wanted if version} or {soname}
        with open(script, 'w') as file:
            for version in sorted(versions):
                listed = ' '.join(f'{name};' for name in sorted(wanted.get(version, ())))
                file.write(f'{version} {{ {listed or "*;"} }};\n')
        flags = ['-shared', '-fPIC', '-w', '-nostdlib', f'-Wl,-soname,{soname}']
        if any(wanted):
            flags.append(f'-Wl,--version-script={script}')
        subprocess.run(['gcc', *flags, '-o', os.path.join(folder, soname), source], check=True)
    return len(names)


def main():
    site = sysconfig.get_path('purelib')
    torch = os.path.dirname(importlib.util.find_spec('torch').origin)
    folder = os.path.join(torch, 'lib')
    nvidia = os.path.join(site, 'nvidia')
    present = {}
    for top in (nvidia, folder):
        for where, _, files in os.walk(top):
            present.update({file: os.path.join(where, file) for file in files if '.so' in file})
    libraries = [os.path.join(folder, file) for file in sorted(os.listdir(folder)) if '.so' in file]
    libraries = [path for path in libraries if not is_stub(path)]
    missing = {name for path in libraries for name in needed(path)
               if re.match(r'lib(cu|nv|nccl)', name)
               and (name not in present or is_stub(present[name]))}
    wanted = {soname: collections.defaultdict(set) for soname in missing}
    unversioned, defined_somewhere = set(), set()
    for path in [*libraries, *(path for path in present.values() if path.startswith(nvidia))]:
        defined_somewhere |= symbols(path)[1]
    for path in libraries:
        files = version_files(path)
        for name, version in symbols(path)[0]:
            version = version.split(' ')[0] if version else None
            if version and files.get(version) in missing:
                wanted[files[version]][version].add(name)
            elif version is None and re.match(r'(cudnn|nccl|cu[a-z]+|nvrtc)[A-Z_]', name):
                unversioned.add(name)
    # Names without a version may come from any library that is loaded: those found nowhere go into
    # every library of which no name with a version is asked.
    for soname in missing:
        if not wanted[soname]:
            wanted[soname][None] = unversioned - defined_somewhere
    for soname in sorted(missing):
        print(f'  {soname}: {compile_stub(soname, wanted[soname], folder)} functions')


def is_stub(path):
    return os.path.getsize(path) < 200_000 and b'stub.c' in open(path, 'rb').read()


if __name__ == '__main__':
    main()
