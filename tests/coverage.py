#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines of a build with --coverage that its tests have reached, by file.

    tests/coverage.py BUILD DIRECTORY [--least PERCENT] [--missing]

Objects are those of DIRECTORY (src/core) in BUILD; --missing lists the lines
that no test has reached."""

import argparse
import json
import os
import subprocess
import sys


def counts(build, directory):
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


def ranges(lines):
    rows = []
    for n in lines:
        if rows and rows[-1][1] == n - 1:
            rows[-1][1] = n
        else:
            rows.append([n, n])
    return ' '.join(str(a) if a == b else f'{a}-{b}' for a, b in rows)


def main():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('build')
    p.add_argument('directory')
    p.add_argument('--least', type=float, default=0)
    p.add_argument('--missing', action='store_true')
    a = p.parse_args()
    total = reached = 0
    for name, lines in sorted(counts(a.build, a.directory).items()):
        missing = sorted(n for n, times in lines.items() if times == 0)
        total += len(lines)
        reached += len(lines) - len(missing)
        print(f'{100 * (len(lines) - len(missing)) / len(lines):6.1f} %'
              f'{len(lines):6}  {name}')
        if a.missing and missing:
            print(f'          {ranges(missing)}')
    percent = 100 * reached / total
    print(f'{percent:6.1f} %{total:6}  {a.directory}')
    if percent < a.least:
        sys.exit(f'{a.directory}: {percent:.1f} % of the lines are reached, '
                 f'{a.least:g} % are asked for')


if __name__ == '__main__':
    main()
