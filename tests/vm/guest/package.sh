#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Our Debian packages in an installed Debian with systemd and BIRD, by its dpkg:
# installed, their own tests, configured, reloaded, upgraded under traffic, an
# upgrade that is refused, removed, purged; then nothing is left.
#
#	user 10.0.9.2 --- lanu 10.0.9.1 this node 10.0.1.1 lan1 --- 10.0.1.2 b1
#	its BIRD is the peer                    10.0.2.1 lan2 --- 10.0.2.2 b2
#
# For xlb-backend this host is a backend too, behind back0.
. /guest/lib.sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive AUTOPKGTEST_TMP
CONF=/etc/xlb/xlb.yaml
VIP=203.0.113.10
HELD=198.51.100.7
TCP=7000 UDP=7001
mkdir -p /tmp/t && cd /tmp/t || exit 1
>/tmp/pids

log_print() {
	journalctl -q -n 40 --no-pager -o short-monotonic -u xlb -u bird \
	    -u 'xlb-*'
	cat /tmp/t/*.log
}

no() { ! "$@"; }
state() { systemctl show -P "$1" xlb; }
is() { [ "$(state "$1")" = "$2" ]; }
pid() { state MainPID; }

# What the system has of files, users, network and units. Of what changes by
# itself the names are left out, not the directories.
everything() {
	find / -xdev \( -path /var/log -o -path /tmp -o -path /var/tmp -o \
	    -path /var/lib/dpkg -o -path /var/cache -o -path /guest -o \
	    -path /root \) -prune -o -print |
	    sed -e '/\/__pycache__/d' -e '/\/g*\(passwd\|shadow\|group\)-$/d'
	find /run /var/cache /var/lib/systemd | grep -e xlb
	getent passwd
	getent group
	ip -o link | sed 's/^[0-9]*: \([^:@]*\).*/device \1/'
	ip -o addr | awk '{ print $2, $4 }'
	ip rule
	ip -6 rule
	ip route show table all
	ip -6 route show table all | grep -v fe80
	tc qdisc | grep -v -e noqueue -e fq_codel
	find /sys/fs/bpf
	systemctl list-unit-files --no-legend --no-pager 'xlb*'
	systemctl list-units --all --no-legend --no-pager 'xlb*'
	pgrep -l xlb
	grep -rl xlb /etc --exclude=bird.conf --exclude='*-'
}

install() {	# DIRECTORY LOG: as `apt install ./...` would, its words on LOG
	dpkg -i /guest/$1/xlb_*.deb /guest/$1/xlb-backend_*.deb </dev/null >$2 2>&1
}

link() {	# NAMESPACE DEVICE NET
	must ip netns add $1
	must ip link add $2 mtu 1600 type veth peer name eth0 mtu 1600 netns $1
	must ip addr add 10.0.$3.1/24 dev $2
	ip -n $1 link set lo up
	ip -n $1 link set eth0 up
	must ip -n $1 addr add 10.0.$3.2/24 dev eth0
	must ip -n $1 route add default via 10.0.$3.1
	# as on a wire: nobody fills in a checksum later
	at $1 ethtool -K eth0 tx off tso off gso off gro off >/dev/null
	ip link set $2 up
	ethtool -K $2 tx off tso off gso off gro off >/dev/null
	sysctl -qw net.ipv4.conf.$2.rp_filter=0
	at $1 sysctl -qw net.ipv4.conf.all.rp_filter=0 \
	    net.ipv4.conf.eth0.rp_filter=0
}

network() {
	sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0
	link user lanu 9
	for b in 1 2; do
		link b$b lan$b $b
		must ip -n b$b addr add $VIP/32 dev lo
	done
	must ip link add back0 type veth peer name back1
	ip link set back0 up
	ip link set back1 up
	must ip addr add 10.0.5.1/24 dev back0
	cat >far.conf <<B
router id 10.0.9.2;
protocol device { }
protocol kernel { ipv4 { import none; export all; }; }
protocol bfd { interface "eth0" { interval 300 ms; multiplier 10; }; }
protocol bgp node {
	local 10.0.9.2 as 65000; neighbor 10.0.9.1 as 65001; bfd on;
	connect delay time 1; error wait time 1,5;
	ipv4 { import all; export none; };
}
B
	at user bird -c $PWD/far.conf -s $PWD/far.ctl -P $PWD/far.pid
	cat far.pid >>/tmp/pids
}

backends() {
	for b in 1 2; do
		must at b$b xlb-decap --bpf-dir /sys/fs/bpf/decap-b$b attach eth0 \
		    --from 10.0.$b.1
		# its input is what ends it
		mkfifo b$b.in
		at b$b python3 /guest/streams.py serve b$b $TCP 7002 <b$b.in \
		    >b$b.log 2>&1 &
		echo $! >>/tmp/pids
		eval "exec $((b + 3))>b$b.in"
		spawn $PWD/u$b.log b$b python3 /guest/datagrams.py serve $UDP
	done
}

config() {	# WEIGHT
	cat >$CONF <<Y
interfaces: [{name: lanu}, {name: lan1}, {name: lan2}]
bgp:
  local_as: 65001
  router_id: 10.0.9.1
  neighbors: [{address: 10.0.9.2, as: 65000, bfd: true}]
  hold: 0s
  graceful_shutdown: 1s
  linger: 1s
checks:
  web: {type: tcp, port: 7002, interval: 500ms}
pools:
  web:
    check: web
    backends:
      - {name: b1, address: 10.0.1.2, weight: $1}
      - {name: b2, address: 10.0.2.2}
services:
  - {name: www, addresses: [$VIP], listen: [tcp/$TCP, tcp/7002, udp/$UDP], pool: web}
metrics: {listen: off}
Y
}

peer() { birdc -s /tmp/t/far.ctl "$@"; }
announced() { peer show route $VIP/32 | grep -q unicast; }
since() { peer show route $VIP/32 | sed -n 's/.*\[\(.*\)\].*/\1/p'; }
answers() { printf 'hello\n' | at user timeout 5 python3 -c "
import socket, sys
s = socket.create_connection(('$VIP', $TCP), 3)
s.sendall(b'hello\n')
sys.exit(not s.recv(99).endswith(b'hello\n'))"; }

traffic_start() {
	mkfifo hold.in send.in
	at user python3 /guest/streams.py hold $TCP 40 2 $VIP <hold.in \
	    >hold.log 2>&1 &
	HOLD=$!
	at user python3 /guest/datagrams.py send $VIP $UDP 20 <send.in \
	    >send.log 2>&1 &
	SEND=$!
	exec 8>hold.in 9>send.in
}

traffic_say() { echo "$1" >&8; within 10 grep -q "\"what\": \"$1\"" hold.log; }
holding() { echo count >&8; sleep 0.3
	tail -n 1 hold.log | grep -q '"holding": 40'; }

traffic_end() {
	echo ask >&8
	sleep 5
	exec 9>&-
	wait $SEND
	traffic_say done
	exec 8>&-
	wait $HOLD
}

# Packets that a pair of devices had no room for: that is not the node, but a
# guest without KVM, whose processors stand still for seconds.
no_room() {
	{
		ip -s link
		for ns in user b1 b2; do ip -n $ns -s link; done
	} | awk '/TX:/ { getline; sum += $4 } END { print sum + 0 }'
}

# All connections, new ones and datagrams, but for those without room.
unbroken() {	# NO-ROOM-BEFORE
	tail -n 1 hold.log; tail -n 21 send.log; echo "no room: $(no_room) $1"
	tail -n 1 hold.log | grep -q '"holding": 40, "asked": 40, "open": 40, "broken": 0, "failed": 0' &&
	    [ "$(sed -n "s/ sent.*//p" send.log)" -ge 500 ] &&
	    [ "$(sed -n "s/.* sent, \(.*\) lost/\1/p" send.log)" -le \
		$(($(no_room) - $1)) ]
}

# Counted drops; what comes to a VIP and is for no service is no traffic of ours.
drops() {
	xlb stats --json | python3 -c '
import json, sys
r = json.load(sys.stdin)["reasons"]
print({k: r[k] for k in "no_backend malformed fragment_unknown martian "
       "too_big_no_df too_big_rate no_neighbor encap_failed".split() if r[k]})'
}

held() { ip -o addr show dev lo | grep -q "$HELD/32"; }
prog() { ip -d link show back0 | sed -n 's/.*prog\/xdp id \([0-9]*\).*/\1/p'; }

network
systemctl restart bird		# its first start had no address yet
everything | sort >before
ok "dpkg installs both" install debs install.log
ok "and is content" sh -c 'dpkg --audit; [ -z "$(dpkg --audit)" ]'
ok "the service runs" is ActiveState active
ok "it is enabled" systemctl -q is-enabled xlb
ok "and serves nothing" sh -c "xlb status --json |
    grep -q '\"services\": *\[\]'"
ok "there is nothing attached or announced" sh -c '! ip link | grep -q xdp &&
    ! ls /run/xlb-bird/*.conf 2>/dev/null'
ok "its users are there" sh -c 'id _xlb && getent group xlb xlb-admin bird'
ok "manuals are found" sh -c \
    'man -w 8 xlb xlbd xlb-decap && man -w 5 xlb.yaml'
ok "the package's own test: installed" sh -e /guest/installed
AUTOPKGTEST_TMP=$(mktemp -d)
ok "the package's own test: traffic" sh /guest/traffic
ok "after it: a start" systemctl start xlb

# As README.Debian says.
cp -p /etc/bird/bird.conf bird.conf.orig
backends
config 100
ok "xlb check" xlb check
ok "systemctl reload xlb" systemctl reload xlb
xlb bird-config | sed 's/100 ms; multiplier 3/300 ms; multiplier 10/' \
    >/etc/bird/bird.conf
ok "bird.conf from xlb bird-config" systemctl reload bird
ok "the peer gets the route" within 60 announced
ok "the service answers" within 10 answers
sed -i 's/^XLB_DECAP_OPTIONS=.*/XLB_DECAP_OPTIONS="--from 10.255.0.0\/16"/' \
    /etc/xlb/decap.conf
ok "a backend's units start" systemctl -q enable --now xlb-vip@$HELD \
    xlb-decap@back0
ok "it holds the VIP" held
ok "it unwraps" [ -n "$(prog)" ]
sum=$(cat $CONF /etc/xlb/decap.conf | sha256sum)

DROPS=$(drops) NO_ROOM=$(no_room)
traffic_start
ok "40 connections are held" within 60 holding
config 50
ok "a reload under traffic" systemctl reload xlb
config 100
ok "and another" systemctl reload xlb
PID=$(pid) SINCE=$(since) PROG=$(prog)
ok "the upgrade of both" install next upgrade.log
ok "another process" [ "$(pid)" != "$PID" ]
ok "of the new program" sh -c "! readlink /proc/$(pid)/exe | grep -q deleted"
ok "which serves" is StatusText serving
ok "dpkg has the new version" sh -c \
    "dpkg-query -W -f '\${Version} ' xlb xlb-backend | grep -q 'next .*next '"
ok "the configuration files are as they were" \
    [ "$(cat $CONF /etc/xlb/decap.conf | sha256sum)" = "$sum" ]
ok "the backend has the new program" sh -c \
    "[ -n '$(prog)' ] && [ '$(prog)' != '$PROG' ]"
ok "and holds its VIP" held
traffic_end
ok "no connection broke or failed, no datagram was lost" unbroken $NO_ROOM
ok "nothing was dropped" [ "$(drops)" = "$DROPS" ]
ok "the route was never withdrawn" [ "$(since)" = "$SINCE" ]

PID=$(pid)
echo "nonsense: 1" >>$CONF
ok "an upgrade that the new one could not take over" install debs refused.log
ok "says why" grep -q 'nonsense: unknown key' refused.log
ok "and what to do" grep -q 'systemctl restart xlb' refused.log
ok "the old one goes on" [ "$(pid)" = "$PID" ]
ok "and answers" answers
config 100
ok "mended, it restarts" systemctl restart xlb
ok "and it is another" [ "$(pid)" != "$PID" ]
ok "the route was not withdrawn either" [ "$(since)" = "$SINCE" ]
systemctl stop xlb
ok "one that is stopped stays so" sh -c \
    'dpkg -i /guest/next/xlb_*.deb >stopped.log 2>&1 && ! systemctl -q is-active xlb'
ok "until it is started" systemctl start xlb
ok "which announces" within 60 announced

rm -rf /sys/fs/bpf/decap-b*	# those of the namespaces, not the package's
ok "dpkg removes both" sh -c 'dpkg -r xlb xlb-backend >remove.log 2>&1'
ok "the route is gone" no announced
ok "and xlb0, the programs, the pins" sh -c '[ ! -e /sys/class/net/xlb0 ] &&
    ! ip link | grep -q xdp && ! ls -d /sys/fs/bpf/xlb*'
ok "and the VIP on this host" no held
ok "the configuration stays" [ -s $CONF ]
cat bird.conf.orig >/etc/bird/bird.conf
ok "bird.conf without it" systemctl reload bird
ok "dpkg purges both" sh -c 'dpkg -P xlb xlb-backend >purge.log 2>&1'
everything | sort >after
ok "nothing is left" diff before after
ok "dpkg installs both again" install next again.log
ok "and it runs" is ActiveState active
ok "as at first: it serves nothing" sh -c "xlb status --json |
    grep -q '\"services\": *\[\]'"
exec 4>&- 5>&-
kill $(cat /tmp/pids) 2>/dev/null
echo "1..$n"
exit $((bad > 0))
