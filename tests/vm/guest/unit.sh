#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The unit as it is installed, in a real systemd, beside Debian's BIRD: what a
# start, a reload, a death, a hang, a stop and the start limit do to the routes
# of a BGP peer.
#
#	this node 10.0.1.1 lan0 --- eth0 (namespace far) 10.0.1.254 the peer
#	                                 10.0.1.11, 10.0.1.12 the backends
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
. /guest/lib.sh
VIP=203.0.113.10
CONF=/etc/xlb/xlb.yaml

log_print() {
	journalctl -q -n 40 --no-pager -o short-monotonic -u xlb -u bird
}

peer() {	# COMMAND: of the other BIRD
	birdc -s /tmp/far.ctl "$*"
}

announced() { peer show route $VIP/32 | grep -q unicast; }
withdrawn() { ! announced; }
since() { peer show route $VIP/32 | sed -n 's/.*\[\(.*\)\].*/\1/p'; }
pid() { systemctl show -P MainPID xlb; }
device() { cat /sys/class/net/xlb0/ifindex 2>/dev/null; }
state() { systemctl show -P "$1" xlb; }
is() { [ "$(state "$1")" = "$2" ]; }
no() { ! "$@"; }

# Started anew, and ready: another process, the same device, the same route.
survived() {	# OLD-PID
	[ "$(pid)" != "$1" ] && is ActiveState active &&
	    [ "$(device)" = "$DEVICE" ] && [ "$(since)" = "$SINCE" ]
}

# Of the backends' check: every start below has it, too.
CHECK='test $XLB_ADDRESS != 10.0.1.13'

reason() {	# WORDS: of a backend
	xlb status --json | grep -qF "$*"
}

config() {	# POOL
	mkdir -p /etc/xlb
	cat >$CONF <<Y
node: {name: guest}
interfaces: [{name: lan0}]
maglev: {table_size: 251}
flow_table: {entries: 1024}
bgp:
  local_as: 65001
  router_id: 10.0.1.1
  neighbors: [{address: 10.0.1.254, as: 65000}]
  hold: 0s
  graceful_shutdown: 2s
  linger: 1s
checks:
  own: {type: exec, command: [/bin/sh, -c, '$CHECK']}
pools:
  web: {check: own, backends: [$1]}
services: [{name: www, addresses: [$VIP], listen: [tcp/80], pool: web}]
metrics: {listen: off}
Y
}

network() {
	must ip netns add far
	must ip link add lan0 type veth peer name eth0 netns far
	must ip link set lan0 up
	must ip addr add 10.0.1.1/24 dev lan0
	must ip -n far link set lo up
	must ip -n far link set eth0 up
	for h in 11 12 254; do
		must ip -n far addr add 10.0.1.$h/24 dev eth0
	done
	cat >/tmp/far.conf <<B
router id 10.0.1.254;
protocol device { }
protocol bfd { interface "eth0" { interval 300 ms; multiplier 10; }; }
protocol bgp node {
	local 10.0.1.254 as 65000; neighbor 10.0.1.1 as 65001; bfd on;
	connect delay time 1; error wait time 1,5;
	ipv4 { import all; export none; };
}
B
	at far bird -c /tmp/far.conf -s /tmp/far.ctl -P /tmp/far.pid
}

A="{name: a, address: 10.0.1.11}"
B="{name: b, address: 10.0.1.12}"
C="{name: c, address: 10.0.1.13}"
network
config "$A"
xlb bird-config | sed 's/100 ms; multiplier 3/300 ms; multiplier 10/' \
    >/etc/bird/bird.conf

ok "BIRD starts without xlb" systemctl start bird
ok "and announces nothing" sh -c '! birdc show route table xlb4t | grep -q /32'
ok "the unit starts" systemctl start xlb
ok "the peer gets the route" within 60 announced
ok "the manager holds xlb0" is NFileDescriptorStore 1
ok "it says what it does" is StatusText serving
SINCE=$(since) DEVICE=$(device) PID=$(pid)

config "$A, $B"
ok "a reload" systemctl reload xlb
ok "is in force when it is over" \
    sh -c 'xlb status --json | grep -q 10.0.1.12'
echo "nonsense: 1" >>$CONF
ok "a reload of a bad file fails" no systemctl reload xlb
ok "and the journal says where" sh -c 'journalctl -q --no-pager -u xlb |
    grep -q "xlb.yaml:[0-9]*:1: nonsense: unknown key"'
ok "nothing has changed" sh -c 'xlb status --json | grep -q 10.0.1.12'
config "$A, $B"
ok "a mended file" systemctl reload xlb
ok "the same process, the same route" \
    sh -c "[ $(pid) = $PID ] && [ '$(since)' = '$SINCE' ]"

# Says who it is and what it has: no capability, no way to gain one, the unit's
# filter of system calls. One of the descriptors is of ls.
CHECK='test $XLB_ADDRESS != 10.0.1.13 || { echo "u$(id -u) g$(id -G)"
    of3:$(grep -cE "^(CapPrm:.0*|NoNewPrivs:.1|Seccomp:.2)$" /proc/self/status)
    fd$(ls /proc/self/fd | wc -l) $(kill -9 1 2>/dev/null || echo no kill);
    exit 7; }'
config "$A, $B, $C"
ok "a command that fails" systemctl reload xlb
ok "runs as nobody, with nothing to lose" within 10 reason "exit status 7: \
u65534 g65534 of3:3 fd4 no kill"
ok "xlbd has no more in force than it needs" sh -c \
    "grep -q '^CapEff:.000000c000003000$' /proc/$(pid)/status"
ok "xlb restart" xlb restart
ok "has a launcher as before" within 10 reason "exit status 7: u65534 g65534"
config "$A, $B"
ok "without it" systemctl reload xlb

ok "systemctl restart" systemctl restart xlb
ok "moves nothing" within 5 survived $PID
PID=$(pid)
systemctl kill -s KILL --kill-who=main xlb
ok "SIGKILL moves nothing" within 60 survived $PID
PID=$(pid)
systemctl kill -s STOP --kill-who=main xlb
ok "a hang moves nothing: the watchdog ends it" within 60 survived $PID
ok "by SIGABRT" sh -c 'journalctl -q --no-pager -u xlb |
    grep -q "Watchdog timeout"'
ok "two restarts" is NRestarts 2
PID=$(pid)
ok "the machine sleeps for longer than the watchdog" sleeps 14 10
sleep 7
ok "which has not bitten" sh -c "[ $(pid) = $PID ]"
ok "xlbd serves" is StatusText serving
ok "its route is there" announced
ok "and the device of before" [ "$(device)" = "$DEVICE" ]

systemctl stop --no-block xlb
ok "a stop drains first" within 10 sh -c \
    'birdc -s /tmp/far.ctl show route all | grep -q 65535,0'
ok "and ends" within 30 is ActiveState inactive
ok "well" is Result success
ok "the route is gone" within 1 withdrawn
ok "so is xlb0" [ -z "$(device)" ]
ok "and all that was pinned" [ ! -e /sys/fs/bpf/xlb ]
ok "and the program" sh -c '! ip link show lan0 | grep -q xdp'

mkdir -p /etc/systemd/system/xlb.service.d
printf '[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=600\n' \
    >/etc/systemd/system/xlb.service.d/limit.conf
systemctl daemon-reload
systemctl reset-failed xlb
ok "a new start" systemctl start xlb
ok "announces again" within 60 announced
SINCE=$(since) DEVICE=$(device) PID=$(pid)
systemctl kill -s KILL --kill-who=main xlb
within 60 survived $PID
systemctl kill -s KILL --kill-who=main xlb
ok "the start limit ends the restarts" within 60 is ActiveState failed
ok "xlb0 goes with the store" within 2 [ ! -e /sys/class/net/xlb0 ]
ok "and BIRD withdraws" within 2 withdrawn
ok "packets go on" sh -c 'ip link show lan0 | grep -q xdp'
systemctl reset-failed xlb
ok "a start by hand" systemctl start xlb
ok "brings it back" within 60 announced
ok "a stop" systemctl stop xlb
ok "leaves nothing" sh -c '[ ! -e /sys/fs/bpf/xlb ] &&
    [ ! -e /sys/class/net/xlb0 ]'
echo "1..$n"
exit $((bad > 0))
