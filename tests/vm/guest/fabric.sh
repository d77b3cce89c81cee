#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The short fabric: two nodes, each with xlbd and BIRD, a router that spreads flows
# over both as BGP has it, two backends that unwrap by the kernel's own devices.
. /guest/lib.sh

neighbor() {	# NODE NET
	for a in 10.0.$2.1 fd00:$2::1; do
		echo "protocol bgp ${1}_${#a} from lb { neighbor $a as 64512;"
		case $a in
		*:*) echo "ipv6 { import all; export none; }; }" ;;
		*) echo "ipv4 { import all; export none; }; }" ;;
		esac
	done
}

router_conf() {
	cat <<B
router id 10.0.1.254;
protocol device { }
protocol kernel k4 { merge paths on limit 16;
  ipv4 { import none; export where source = RTS_BGP; }; }
protocol kernel k6 { merge paths on limit 16;
  ipv6 { import none; export where source = RTS_BGP; }; }
template bgp lb { local as 64500; hold time 9; keepalive time 3;
  connect delay time 1; connect retry time 2; error wait time 1,5; }
B
	neighbor node 1
	neighbor node2 3
}

bird_start() {	# NAMESPACE: its configuration is standard input
	mkdir -p /tmp/$1
	cat >/tmp/$1/bird.conf
	spawn /tmp/xlbd.log $1 bird -f -c /tmp/$1/bird.conf -s /tmp/$1/bird.ctl \
	    -P /tmp/$1/bird.pid
}

config() {	# NET: of the node's link
	cat <<Y
interfaces: [{name: eth0, xdp: native}]
bgp:
  local_as: 64512
  router_id: 10.0.$1.1
  neighbors:
    - {address: 10.0.$1.254, as: 64500, bfd: false}
    - {address: "fd00:$1::254", as: 64500, bfd: false}
  hold: 200ms
  graceful_shutdown: 0s
  linger: 500ms
checks:
  web: {type: tcp, interval: 1s, timeout: 900ms, rise: 1, fall: 2}
pools:
  web:
    check: web
    backends: [{name: a, address: 10.0.2.11}, {name: b, address: 10.0.4.11}]
services:
  - {name: www, addresses: [$VIP4, "$VIP6"], listen: [tcp/80], pool: web}
Y
}

node_start() {	# NODE NET
	host=$1
	config $2 | xlbd_start
	node_xlb bird-config | bird_start $1
}

hops() {	# VIP COUNT: the router's ways to it
	local got

	got=$(ip -n router route get fibmatch $1 | grep -c 'via ')
	[ "$got" = "$2" ] && return
	echo "$got ways to $1"
	return 1
}

announced() {	# COUNT: by so many nodes
	within 40 hops $VIP4 $1 && within 40 hops $VIP6 $1
}

# Of 20 connections, so many to each backend at least; none is lost.
served() {	# A B
	local i a=0 b=0 got

	for i in 1 2 3 4 5 6 7 8 9 10; do
		for vip in $VIP4 $VIP6; do
			got=$(printf 'GET / HTTP/1.0\r\n\r\n' | at client timeout 5 \
			    nc -w 4 $vip 80 | tail -n 1)
			case $got in
			hello) a=$((a + 1)) ;;
			hi) b=$((b + 1)) ;;
			*) echo "connection $i to $vip is lost: $got"; return 1 ;;
			esac
		done
	done
	[ $a -ge $1 ] && [ $b -ge $2 ] && return
	echo "a $a, b $b"
	return 1
}

is() {		# BACKEND HEALTH: on both nodes
	for host in node node2; do
		node_xlb status --json | tr -d '\n' | sed 's/.*"backends"//' |
		    grep -q "\"name\": *\"$1\"[^{]*\"health\": *\"$2\"" ||
		    return 1
	done
}

network
netns node2
netns backend2
pair router p2 node2 eth0
pair router pb2 backend2 eth0
give router p2 3 254
give node2 eth0 3 1
give router pb2 4 254
give backend2 eth0 4 11
gateway node2 3.254
gateway backend2 4.254
xdp_pass router p2
hold_vips backend2
decapsulate backend 10.0.2.11
decapsulate backend2 10.0.4.11
serve 80
mkdir -p /tmp/www2
echo hi >/tmp/www2/index.html
spawn /dev/null backend2 httpd -f -p 80 -h /tmp/www2
second=$(tail -n 1 /tmp/pids)
at router sysctl -qw net.ipv4.fib_multipath_hash_policy=1 \
    net.ipv6.fib_multipath_hash_policy=1
router_conf | bird_start router
node_start node 1
node_start node2 3
ok "two nodes announce both addresses" announced 2
ok "both backends serve" served 2 2
kill $second
ok "one of them dies, and is found down" within 20 is b down
ok "the other one serves all" served 20 0
host=node2
ok "a node stops" node_xlb stop
ok "the router has one way left" announced 1
ok "it serves all" served 20 0
ok "the stop left no program, pin or route behind" eval \
    '! ip -n node2 link show eth0 | grep -qw xdp && [ ! -e /sys/fs/bpf/node2 ] &&
    [ -z "$(ip -n node2 link show xlb0 2>/dev/null)" ]'
config 3 | xlbd_start
ok "it is back" announced 2
ok "and serves" served 20 0
end
