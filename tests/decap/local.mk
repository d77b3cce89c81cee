# SPDX-License-Identifier: GPL-2.0-or-later
# xlb-decap: frames through its program, and the command in namespaces.
EXTRA_PROGRAMS += tests/decap/run_frames
tests_decap_run_frames_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS)
tests_decap_run_frames_SOURCES = tests/decap/run_frames.c
tests_decap_run_frames_LDADD = $(DECAP_LIBS)

DECAP_TESTS = tests/decap/test_attach.py tests/decap/test_frames.py
EXTRA_DIST += $(DECAP_TESTS) tests/decap/tap.py tests/decap/peer.py
$(DECAP_TESTS:%=%.log): tests/decap/run_frames
