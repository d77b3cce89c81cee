#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Checks through the tunnel to a backend that decapsulates by the kernel's own
# devices: what is wrong with these takes it down, and it says what was asked.
. /guest/lib.sh

network
decapsulate backend 10.0.2.11
serve 80

health() {	# STATE [REASON]: of the one backend
	node_xlb status --json |
	    tr -d '\n' | sed 's/.*"backends"//' >/tmp/row
	grep -q "\"health\": *\"$1\"" /tmp/row && grep -qF "$2" /tmp/row && return
	cat /tmp/row
	return 1
}

setting() {	# KEY VALUE: of the backend
	must at backend sysctl -qw $1=$2
}

xlbd_start <<Y
interfaces: [{name: eth0}]
checks:
  web: {type: tcp, interval: 1s, timeout: 900ms, rise: 1, fall: 2}
pools:
  web: {check: web, backends: [{name: b, address: 10.0.2.11}]}
services:
  - {name: www, addresses: [$VIP4, "$VIP6"], listen: [tcp/80], pool: web}
Y
ok "a backend with ipip and sit is up" within 60 health up
for rp in net.ipv4.conf.t44.rp_filter net.ipv4.conf.all.rp_filter; do
	setting $rp 1
	ok "$rp=1 takes it down, with what was asked" within 60 health down \
	    "tcp to $VIP4:80 through the tunnel: timeout"
	setting $rp 0
	ok "without it it is up again" within 60 health up
done
must ip -n backend link set t64 down
ok "without the device for IPv6 it is down" within 60 health down \
    "tcp to [$VIP6]:80 through the tunnel: "
must ip -n backend link set t64 up
ok "with it it is up again" within 60 health up
end
