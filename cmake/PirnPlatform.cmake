# SPDX-License-Identifier: MIT
# Which source serves this processor.
set(PIRN_SWITCH_SOURCE switch_ucontext.c)
if(NOT PIRN_PORTABLE_SWITCH)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$"
            AND CMAKE_SIZEOF_VOID_P EQUAL 8)
        set(PIRN_SWITCH_SOURCE switch_x86_64.S)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
        set(PIRN_SWITCH_SOURCE switch_aarch64.S)
    endif()
endif()
if(PIRN_SWITCH_SOURCE STREQUAL switch_ucontext.c)
    add_compile_definitions(PIRN_PORTABLE_SWITCH)
endif()
