# SPDX-License-Identifier: Apache-2.0
"""Documents of older versions in the shape of the newest: the one place that tests a version. Pure.

A file for each kind of document: ``plan`` and ``workload`` of what was asked, ``runs`` of what came out.
"""
