# SPDX-License-Identifier: GPL-2.0-or-later
TESTS += tests/ctl/xlb.py
EXTRA_DIST += tests/ctl/xlb.py tests/golden/status
