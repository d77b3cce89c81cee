# SPDX-License-Identifier: GPL-2.0-or-later
# dpkg-buildpackage works from the tarball as from a checkout.
EXTRA_DIST += debian/changelog debian/control debian/copyright debian/rules
EXTRA_DIST += debian/source/format
EXTRA_DIST += debian/xlb.README.Debian debian/xlb.docs debian/xlb.install
EXTRA_DIST += debian/xlb.lintian-overrides debian/xlb.manpages
EXTRA_DIST += debian/xlb.postinst debian/xlb.postrm debian/xlb.prerm
EXTRA_DIST += debian/xlb-backend.README.Debian debian/xlb-backend.install
EXTRA_DIST += debian/xlb-backend.lintian-overrides debian/xlb-backend.manpages
EXTRA_DIST += debian/xlb-backend.postinst debian/xlb-backend.postrm
EXTRA_DIST += debian/xlb-backend.prerm
EXTRA_DIST += debian/tests/control debian/tests/installed debian/tests/traffic
EXTRA_DIST += tests/deb/check tests/deb/contents
