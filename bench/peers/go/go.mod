// SPDX-License-Identifier: MIT
module pirn/bench/peers

go 1.19
