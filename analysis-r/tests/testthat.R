# SPDX-License-Identifier: Apache-2.0
library(testthat)
library(netjoule)

test_check("netjoule")
