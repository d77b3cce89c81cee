# SPDX-License-Identifier: GPL-2.0-or-later
xlbconfdir = $(sysconfdir)/xlb
dist_xlbconf_DATA = etc/xlb.yaml
xlbexampledir = $(docdir)/examples
dist_xlbexample_DATA = etc/example.yaml

# For whoever watches: alerts and a dashboard.
xlbprometheusdir = $(datadir)/xlb/prometheus
dist_xlbprometheus_DATA = etc/prometheus/xlb.rules.yml
xlbgrafanadir = $(datadir)/xlb/grafana
dist_xlbgrafana_DATA = etc/grafana/xlb.json

# What the service manager reads. Names without the package's own prefix are
# given at install, as their directories want them.
etc/xlb.service: etc/xlb.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) etc && \
	$(SED) -e 's,@sbindir[@],$(sbindir),g' -e 's,@bindir[@],$(bindir),g' \
	    $(srcdir)/etc/xlb.service.in >$@.tmp && mv $@.tmp $@
systemdsystemunit_DATA = etc/xlb.service
CLEANFILES += etc/xlb.service
EXTRA_DIST += etc/xlb.service.in etc/xlb.sysusers etc/xlb.tmpfiles

install-data-hook: install-systemd
install-systemd:
	$(MKDIR_P) '$(DESTDIR)$(sysusersdir)' '$(DESTDIR)$(tmpfilesdir)'
	$(INSTALL_DATA) $(srcdir)/etc/xlb.sysusers \
	    '$(DESTDIR)$(sysusersdir)/xlb.conf'
	$(INSTALL_DATA) $(srcdir)/etc/xlb.tmpfiles \
	    '$(DESTDIR)$(tmpfilesdir)/xlb.conf'

uninstall-hook: uninstall-systemd
uninstall-systemd:
	rm -f '$(DESTDIR)$(sysusersdir)/xlb.conf' \
	    '$(DESTDIR)$(tmpfilesdir)/xlb.conf'
.PHONY: install-systemd uninstall-systemd

EXTRA_DIST += tests/unit_file.sh
dist_bashcompletion_DATA = etc/completion/xlb
dist_zshcompletion_DATA = etc/completion/_xlb
