# SPDX-License-Identifier: Apache-2.0
"""Power models of client devices: air time, frames and CPU time in, watts out.

The process `netjoule-device` joins the statistics of the emulated link and the CPU time of a network
namespace into a stream of samples. It knows neither instruments nor transports.
"""
