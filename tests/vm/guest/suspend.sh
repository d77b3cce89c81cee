#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The machine sleeps (to RAM, woken by its clock) while a node serves: what did not
# answer while nothing ran is not down, what was not watched is not up, and no
# route moves.
. /guest/lib.sh
VIP_NEW=203.0.113.12

# At most times some check is under way: each of the four of `slow` is half of it.
config() {	# SERVICE...: more of them
	cat <<Y
interfaces: [{name: eth0, xdp: native}]
bgp:
  local_as: 64512
  router_id: 10.0.1.1
  neighbors: [{address: 10.0.1.254, as: 64500, bfd: false}]
  hold: 12s
  graceful_shutdown: 0s
  linger: 500ms
checks:
  web: {type: tcp, interval: 1s, timeout: 900ms, rise: 1, fall: 1}
  slow: {type: exec, via: direct, command: [/bin/sleep, "2"], interval: 4s,
    timeout: 3800ms, rise: 1, fall: 1}
pools:
  web:
    check: web
    backends: [{name: a, address: 10.0.2.11}, {name: dead, address: 10.0.2.12}]
  slow:
    check: slow
    backends: [{name: a, address: 10.0.2.11}, {name: b, address: 10.0.2.13},
      {name: c, address: 10.0.2.14}, {name: d, address: 10.0.2.15}]
services:
  - {name: www, addresses: [$VIP4], listen: [tcp/80], pool: web}
  - {name: slow, addresses: [203.0.113.11], listen: [tcp/80], pool: slow}
Y
	for service; do echo "  - $service"; done
}

bird_start() {	# NAMESPACE: its configuration is standard input
	mkdir -p /tmp/$1
	cat >/tmp/$1/bird.conf
	spawn /tmp/xlbd.log $1 bird -f -c /tmp/$1/bird.conf -s /tmp/$1/bird.ctl \
	    -P /tmp/$1/bird.pid
}

router_conf() {
	cat <<B
router id 10.0.1.254;
protocol device { }
protocol bgp node { local as 64500; neighbor 10.0.1.1 as 64512;
  hold time 9; keepalive time 3; connect delay time 1;
  ipv4 { import all; export none; }; }
B
}

peer() { birdc -s /tmp/router/bird.ctl "$@"; }
announced() { peer show route $1/32 | grep -q unicast; }
not_announced() { ! announced $1; }
# Whatever was told of a route; what BIRD says of times goes by the wall's clock.
withdrawals() { peer show protocols all node | grep 'Import withdraws'; }

# Of each backend what it is, since when, and why.
verdicts() {
	node_xlb status --json | tr -d '\n' | sed 's/.*"pools"//; s/"services".*//' |
	    grep -oE '"(name|health|eligible|since|reason)": *[^,}]*'
}

as_expected() {	# five backends are up, one is down
	verdicts >/tmp/was
	[ $(grep -c '"up"' /tmp/was) = 5 ] && [ $(grep -c '"down"' /tmp/was) = 1 ]
}

same() {	# FILE COMMAND...: says what the file holds
	local file=$1
	shift
	"$@" >$file.now
	diff $file $file.now
}

network
for h in 12 13 14 15; do must ip -n backend addr add 10.0.2.$h/24 dev eth0; done
decapsulate backend 10.0.2.11
serve 80
router_conf | bird_start router
config | xlbd_start
node_xlb bird-config | bird_start node
ok "all backends but one are up" within 60 as_expected
ok "their addresses are announced" within 60 eval \
    "announced $VIP4 && announced 203.0.113.11"
withdrawals >/tmp/withdrawals
config "{name: new, addresses: [$VIP_NEW], listen: [tcp/80], pool: slow}" |
    reload >/dev/null 2>&1
cp /tmp/xlbd.log /tmp/said
ok "the machine sleeps for longer than the hold" sleeps 20 15
sleep 4			# the hold is longer than what it was awake
ok "a new address is still held: nobody watched it" not_announced $VIP_NEW
ok "then it is announced" within 30 announced $VIP_NEW
echo "xlbd: address $VIP_NEW: withdrawn -> to be announced" >>/tmp/said
ok "no verdict has changed" same /tmp/was verdicts
ok "nothing was withdrawn" same /tmp/withdrawals withdrawals
ok "and nothing said but that" same /tmp/said cat /tmp/xlbd.log
ok "a stop" node_xlb stop
end
