# SPDX-License-Identifier: Apache-2.0
# The path of "a troubled marriage" in ns-2 2.35: NewReno from s over n1 and n2 to r; n1 scales its rate by practRA.
# ns troubled_marriage.tcl NAME VALUE...; prints one JSON line: totals at 20 s and at the end.
array set asked {rtt_ms 100 queue 42 mrci_ms 0 phase_ms 0 d_ms 0 bursts_mbps 0 varying_ms 0 seed 1 delayed_acks 1 end_s 300}
array set asked $argv
set delta_s 0.001
set weight 0.25
set packet_bits 12000.0

ns-random $asked(seed)
remove-all-packet-headers
add-packet-header IP TCP Flags RTP
set ns [new Simulator]
foreach node {s n1 n2 r} { set $node [$ns node] }
set rtt_s [expr $asked(rtt_ms) / 1000.0]
$ns duplex-link $s $n1 100Mb [expr $rtt_s / 8] DropTail
$ns duplex-link $n1 $n2 10Mb [expr $rtt_s / 8] DropTail
$ns duplex-link $n2 $r 10Mb [expr $rtt_s / 4] DropTail
$ns queue-limit $s $n1 1000
$ns queue-limit $n1 $n2 $asked(queue)
$ns queue-limit $n2 $r $asked(queue)

Agent/TCP set minrto_ 0.2
Agent/TCP set tcpTick_ 0.001
set tcp [new Agent/TCP/Newreno]
$tcp set packetSize_ 1460
$tcp set window_ 1000000
$tcp set windowInit_ 2
$tcp set fid_ 1
set sink [new [expr {$asked(delayed_acks) ? "Agent/TCPSink/DelAck" : "Agent/TCPSink"}]]
$ns attach-agent $s $tcp
$ns attach-agent $r $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$ftp start"

# The queue of n1: what arrives, waits and is dropped; by flow where there is more than one.
set scaling [[$ns link $n1 $n2] link]
set queue [$ns monitor-queue $n1 $n2 ""]
if {$asked(bursts_mbps)} {
  set flows [$ns makeflowmon Fid]
  $ns attach-fmon [$ns link $n1 $n2] $flows
}
proc of_flow {what} {
  global asked flows queue
  if {!$asked(bursts_mbps)} { return [$queue set $what] }
  foreach flow [$flows flows] {
    if {[$flow set flowid_] == 1} { return [$flow set $what] }
  }
  return 0
}

# practRA.
set step 10
set switches 0
set rate_integral 0.0
set since_s 0.0
set paused_until_s 0.0
set estimate_bps -1
set seen_bytes 0
proc integrate {} {
  global ns step rate_integral since_s
  set rate_integral [expr $rate_integral + $step * ([$ns now] - $since_s)]
  set since_s [$ns now]
}
proc tick {} {
  global ns asked queue step estimate_bps seen_bytes weight delta_s
  set mrci_s [expr $asked(mrci_ms) / 1000.0]
  set d_s [expr $asked(d_ms) / 1000.0]
  set bytes [$queue set barrivals_]
  set sample [expr 8.0 * ($bytes - $seen_bytes) / $mrci_s]
  set seen_bytes $bytes
  set estimate_bps [expr {$estimate_bps < 0 ? $sample : $estimate_bps + $weight * ($sample - $estimate_bps)}]
  set waiting [expr 8.0 * [$queue set size_]]
  set rate [expr $step * 1e6]
  if {$step < 10 && ($waiting > $d_s * $rate ||
      $delta_s * $estimate_bps + $waiting > ($d_s - $delta_s) * ($rate + 1e6))} {
    switch_to [expr $step + 1]
  } elseif {$step > 1 && $waiting == 0 && $estimate_bps < $rate - 1e6} {
    switch_to [expr $step - 1]
  }
  $ns at [expr [$ns now] + $mrci_s] tick
}
proc switch_to {new} {
  global ns step switches paused_until_s delta_s before_sending
  integrate
  set step $new
  incr switches
  set paused_until_s [expr [$ns now] + $delta_s]
  $before_sending set callback_ 1
}
# Called before a packet is sent, from a switch on: one that comes during the pause takes what is left of it longer.
Trace/Deque instproc handle {line} {
  global ns step paused_until_s scaling packet_bits
  set pause_s [expr $paused_until_s - [$ns now]]
  if {$pause_s <= 0} {
    set pause_s 0
    $self set callback_ 0
  }
  $scaling set bandwidth_ [expr $packet_bits / ($pause_s + $packet_bits / ($step * 1e6))]
}
if {$asked(mrci_ms)} {
  set before_sending [$ns create-trace Deque [open /dev/null w] $n1 $n2]
  set waiting [[$ns link $n1 $n2] queue]
  $before_sending target [$waiting target]
  $waiting target $before_sending
  $ns at [expr $asked(phase_ms) / 1000.0] tick
}

# Bursts of other traffic, one a second, and a bottleneck behind n1.
set chance [new RNG]
$chance seed $asked(seed)
proc burst {} {
  global ns chance cbr gap_s
  set length_s [$chance exponential 0.1]
  set length_s [expr $length_s < 1 ? $length_s : 1]
  if {$length_s > $gap_s} {
    $ns at [expr [$ns now] + $gap_s] "$cbr start"
    $ns at [expr [$ns now] + $length_s + 1e-9] "$cbr stop"
  }
  $ns at [expr [$ns now] + 1] burst
}
if {$asked(bursts_mbps)} {
  set udp [new Agent/UDP]
  $udp set packetSize_ 1500
  $udp set fid_ 2
  set void [new Agent/Null]
  $ns attach-agent $n1 $udp
  $ns attach-agent $r $void
  $ns connect $udp $void
  set cbr [new Application/Traffic/CBR]
  $cbr set packetSize_ 1500
  $cbr set rate_ $asked(bursts_mbps)Mb
  $cbr attach-agent $udp
  set gap_s [expr $packet_bits / ($asked(bursts_mbps) * 1e6)]
  $ns at [$chance uniform 0 1] burst
}
set bottleneck [[$ns link $n2 $r] link]
proc vary {} {
  global ns chance bottleneck asked
  $bottleneck set bandwidth_ [$chance uniform 1e6 10e6]
  $ns at [expr [$ns now] + [$chance exponential [expr $asked(varying_ms) / 1000.0]]] vary
}
if {$asked(varying_ms)} { $ns at 0 vary }

proc totals {} {
  global ns tcp rate_integral switches
  integrate
  return [format {{"t_s": %g, "acked": %d, "rate_s": %.9g, "switches": %d, "arrived": %d, "dropped": %d}} \
    [$ns now] [expr [$tcp set ack_] + 1] $rate_integral $switches [of_flow parrivals_] [of_flow pdrops_]]
}
proc finish {} {
  puts "\[$::early, [totals]\]"
  exit 0
}
$ns at 20 {set early [totals]}
$ns at $asked(end_s) finish
$ns run
