// SPDX-License-Identifier: MIT
// tests/headers/all.cc - the public names beside those of the C++ library.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std;
using namespace std::chrono;

#include <pirn/pirn.h>

static_assert(sizeof(PIRN_NEVER) == sizeof(uint64_t), "a deadline is a number");
