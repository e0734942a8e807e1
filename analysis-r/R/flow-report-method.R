# SPDX-License-Identifier: Apache-2.0

# The method of flows, in words.

method_words <- c(
  paste(
    "E_A = (P_A - P_I) / T_A, in joules per megabit (1 Mb = 10^6 bit of payload). P_A and T_A belong to one window on",
    "one clock: the whole receiver intervals inside the measure window. T_A counts first copies only."
  ),
  paste(
    "P_I is the line through the idle windows before and after the run, at the middle of that window; idle has the",
    "same processes and sockets, only no packets."
  ),
  paste(
    "A mini-block holds every transport and null at one payload and load, back to back in random order; a block holds",
    "every cell once. The block is the unit of replication; pairs are formed only inside a mini-block."
  ),
  paste(
    "Transports are tested against each other over all loads, in at most six main comparisons that the",
    "workload fixes: sign-flip test over blocks and Holm's correction, from 8 blocks on. Everything by cell has an",
    "interval and no test: it is exploratory."
  ),
  paste(
    "The generator floor is the same schedule with transport null: messages are built, timed and dropped. E_A above",
    "floor takes it off: (P_A - P_null) / T_A, each power above the idle power of its own run. It is empty where",
    "either run sent under 99 % of its schedule, where the pacer spun, where the senders on one host were over 90 % of",
    "a core busy, and without a valid null run."
  ),
  paste(
    "Energy envelope: the band between least and greatest E_A over message sizes, without runs outside the device",
    "model's validity (hollow) and without cells of which most runs lie below the meter's resolution. A load with any",
    "such run has no ratio."
  ),
  paste(
    "Payload size is the application's message size. Streams (TCP, QUIC) pack messages into frames; datagram",
    "transports send one message each: compare them only with frames per message in view."
  ),
  paste(
    "Scheduled messages are sent or not_sent: a transport with congestion control may let fewer leave than the load",
    "asks for. Sent messages arrive or are lost. E_A and goodput count what arrived, loads are what was asked."
  ),
  "u95 meter is the metering uncertainty of one run; most of it is common to all runs, so it is kept apart."
)
