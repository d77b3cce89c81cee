# SPDX-License-Identifier: GPL-2.0-or-later
xlbconfdir = $(sysconfdir)/xlb
dist_xlbconf_DATA = etc/xlb.yaml
xlbexampledir = $(docdir)/examples
dist_xlbexample_DATA = etc/example.yaml
