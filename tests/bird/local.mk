# SPDX-License-Identifier: GPL-2.0-or-later
# A driver of io/bird, and what drives it.
EXTRA_PROGRAMS += tests/bird/drive
tests_bird_drive_SOURCES = tests/bird/drive.c
tests_bird_drive_CPPFLAGS = $(libxlbio_a_CPPFLAGS)
tests_bird_drive_LDADD = $(XLBIO_LIBS)

BIRD_TESTS = tests/bird/test_fake.py tests/bird/test_real.py
BIRD_TESTS += tests/bird/test_notify.py
EXTRA_DIST += $(BIRD_TESTS) tests/bird/rig.py
$(BIRD_TESTS:%=%.log): tests/bird/drive tests/bird/notified

EXTRA_PROGRAMS += tests/bird/notified
tests_bird_notified_SOURCES = tests/bird/notified.c
tests_bird_notified_CPPFLAGS = $(libxlbio_a_CPPFLAGS)
tests_bird_notified_LDADD = $(XLBIO_LIBS)
