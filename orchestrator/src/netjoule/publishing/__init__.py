# SPDX-License-Identifier: Apache-2.0
"""A campaign as a bundle for others: masked, checked, with checksums, citation and licence.

Nothing of it is for the time of a campaign; what it knows of one is what stands in its folder.
"""
