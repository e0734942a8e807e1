# SPDX-License-Identifier: Apache-2.0
# BoringSSL asks for -ggdb itself: these flags come behind it.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g0 -DNDEBUG" CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g0 -DNDEBUG" CACHE STRING "")
