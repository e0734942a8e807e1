# SPDX-License-Identifier: Apache-2.0
"""Types of documents, a module per contract, generated from the schemas by scripts/contract_types.py.

Lists are tuples. An optional field that is absent is None, or UNSET where null says something of its own.
"""
