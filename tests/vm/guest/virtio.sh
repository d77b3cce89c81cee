#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The packet program on virtio-net cards, of which two are on one wire: native, and
# to and from a device of another kind.
. /guest/lib.sh

network
decapsulate backend 10.0.2.11
serve 80

card() {	# CARD NAMESPACE DEVICE NET HOST
	must ip link set $1 netns $2 name $3
	must ip -n $2 link set $3 mtu 1600 up
	give $2 $3 $4 $5
}

native() {	# DEVICE
	ip -n node -d link show $1 | grep -q 'prog/xdp id' &&
	    ip -n node -d link show $1 | head -n 1 | grep -qw xdp
}

card eth1 router v0 3 254
card eth2 node v1 3 1
xlbd_start <<Y
interfaces: [{name: v1, xdp: native}, {name: eth0, xdp: native}]
pools:
  four: {backends: [{name: b, address: 10.0.2.11}]}
services:
  - {name: a, addresses: [$VIP4, "$VIP6"], listen: [tcp/80], pool: four}
Y
ok "native on a card" native v1
for vip in $VIP4 $VIP6; do
	ok "$vip in and out by a card" through $vip v0 3 v1 3 v0
	ok "$vip in by a card, out by a veth" through $vip v0 3 eth0 1 p0
	ok "$vip in by a veth, out by a card" through $vip p0 1 v1 3 v0
	ok "$vip echo by a card" ping_vip $vip v0 3
done
ok "a stop leaves the cards" node_xlb stop
ok "as they were" eval '! native v1 && ! native eth0'
end
