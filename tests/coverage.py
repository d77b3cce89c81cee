#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines that the tests of a build have reached, by file.

    tests/coverage.py BUILD DIRECTORY [--least PERCENT] [--missing]
        [--counts PLACE [--known DOCUMENT]]

Objects are those of DIRECTORY (src/core) in BUILD, made with --coverage; --missing
lists the lines that no test has reached. With --counts BUILD was made by clang,
with counters of its own, which PLACE has (`make coverage-io`). --known: fails if
there is a function with lines that are not reached, and DOCUMENT has no row that
says why, or of fewer lines:

    | `bird.c` | bird_open 2, bird_set 1 | why |"""

import argparse
import bisect
import json
import os
import re
import subprocess
import sys


def gcov_counts(build, directory):
    """{file: {line: times}}, of all objects that the file is part of."""
    files = {}
    build = os.path.abspath(build)
    notes = [os.path.join(d, n)
             for d, _, names in os.walk(os.path.join(build, directory))
             for n in names if n.endswith('.gcno')]
    if not notes:
        sys.exit(f'{build}/{directory}: not built with --coverage')
    out = subprocess.check_output(
        ['gcov', '--json-format', '--stdout', *notes], cwd=build,
        stderr=subprocess.DEVNULL, text=True)
    for line in out.splitlines():
        if not line.startswith('{'):
            continue
        for f in json.loads(line)['files']:
            at = f['file'].find(directory + '/')
            if at < 0:
                continue
            have = files.setdefault(f['file'][at:], {})
            for row in f['lines']:
                n = row['line_number']
                have[n] = have.get(n, 0) + row['count']
    return files


def programs(build):
    """What was linked with counters."""
    for d, _, names in os.walk(build):
        for name in names:
            path = os.path.join(d, name)
            if not os.access(path, os.X_OK) or os.path.islink(path):
                continue
            with open(path, 'rb') as f:
                head = f.read(20)
            if head[:4] == b'\x7fELF' and head[16] in (2, 3) and \
                    not name.endswith('.so'):
                yield path


def llvm_counts(build, directory, place):
    """({file: {line: times}}, {file: [(first line, function)]})"""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    merged = os.path.join(place, 'all.profdata')
    counts = [os.path.join(place, n) for n in os.listdir(place)
              if n.endswith('.profraw')]
    subprocess.run(['llvm-profdata-14', 'merge', '-o', merged, *counts],
                   check=True)
    first, *more = programs(build)
    out = subprocess.check_output(
        ['llvm-cov-14', 'export', '-format=lcov', '-instr-profile', merged,
         first, *(w for p in more for w in ('-object', p)),
         os.path.realpath(os.path.join(top, directory))],
        stderr=subprocess.DEVNULL, text=True)
    files, functions, now = {}, {}, ''
    for line in out.splitlines():
        kind, _, rest = line.partition(':')
        if kind == 'SF':
            now = rest[rest.find(directory + '/'):]
        elif kind == 'DA':
            n, times = (int(x) for x in rest.split(',')[:2])
            have = files.setdefault(now, {})
            have[n] = have.get(n, 0) + times
        elif kind == 'FN':
            n, name = rest.split(',')
            functions.setdefault(now, {})[int(n)] = name.split(':')[-1]
    return files, {f: sorted(x.items()) for f, x in functions.items()}


def ranges(lines):
    rows = []
    for n in lines:
        if rows and rows[-1][1] == n - 1:
            rows[-1][1] = n
        else:
            rows.append([n, n])
    return ' '.join(str(a) if a == b else f'{a}-{b}' for a, b in rows)


def by_function(missing, functions):
    """{function: how many of these lines}"""
    count = {}
    for n in missing:
        at = bisect.bisect_right(functions, (n, '\x7f')) - 1
        name = functions[at][1] if at >= 0 else '-'
        count[name] = count.get(name, 0) + 1
    return count


def known(document):
    """{(file, function): lines that a row says why of}"""
    have = {}
    with open(document, encoding='utf-8') as f:
        for line in f:
            m = re.match(r'\| `([\w.]+)` \| ((?:[\w-]+ \d+(?:, )?)+) \|', line)
            for name, n in re.findall(r'([\w-]+) (\d+)', m[2]) if m else ():
                key = m[1], name
                have[key] = have.get(key, 0) + int(n)
    return have


def unknown(document, counts):
    have, wrong = known(document), []
    for path, functions in counts.items():
        for name, n in functions.items():
            why = have.get((os.path.basename(path), name), 0)
            if n > why:
                wrong.append(f'{path}: {name}: {n} lines are not reached, '
                             f'{document} knows of {why}')
    return wrong


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('build')
    p.add_argument('directory')
    p.add_argument('--least', type=float, default=0)
    p.add_argument('--missing', action='store_true')
    p.add_argument('--counts')
    p.add_argument('--known')
    a = p.parse_args()
    functions = {}
    if a.counts:
        files, functions = llvm_counts(a.build, a.directory, a.counts)
    else:
        files = gcov_counts(a.build, a.directory)
    total = reached = 0
    left = {}
    for name, lines in sorted(files.items()):
        missing = sorted(n for n, times in lines.items() if times == 0)
        total += len(lines)
        reached += len(lines) - len(missing)
        left[name] = by_function(missing, functions.get(name, []))
        print(f'{100 * (len(lines) - len(missing)) / len(lines):6.1f} %'
              f'{len(lines):6}  {name}')
        if a.missing and missing:
            print(f'          {ranges(missing)}')
            if functions:
                print('          ' + ', '.join(
                    f'{f} {n}' for f, n in left[name].items()))
    percent = 100 * reached / total
    print(f'{percent:6.1f} %{total:6}  {a.directory}')
    if percent < a.least:
        sys.exit(f'{a.directory}: {percent:.1f} % of the lines are reached, '
                 f'{a.least:g} % are asked for')
    wrong = unknown(a.known, left) if a.known else []
    if wrong:
        sys.exit('\n'.join(wrong))


if __name__ == '__main__':
    main()
